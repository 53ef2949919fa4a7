"""Every worker asks the next one for a sum by remote procedure call (PaddlePaddle with rpc)."""

import os

from paddle.distributed import rpc


def add(a, b):
    return a + b


def main():
    rank, world = int(os.environ["PADDLE_TRAINER_ID"]), int(os.environ["PADDLE_TRAINERS_NUM"])
    rpc.init_rpc(f"worker{rank}", rank, world, os.environ["PADDLE_MASTER_ENDPOINT"])
    peer = f"worker{(rank + 1) % world}"
    print(f"{rank} of {world}: {peer} says {rpc.rpc_sync(peer, add, args=(rank, 40))}", flush=True)
    rpc.shutdown()


if __name__ == "__main__":
    main()
