"""A small model with a sparse table on parameter servers, trained asynchronously (PaddlePaddle with a parameter-server core)."""

import os
import sys

import numpy as np
import paddle
from paddle.distributed import fleet

EPOCHS, BATCH = 30, 32


def model():
    words = paddle.static.data("words", [None, 1], "int64")
    label = paddle.static.data("label", [None, 1], "float32")
    rows = paddle.static.nn.sparse_embedding(words, size=[100, 8], param_attr=paddle.ParamAttr(name="table"))
    flat = paddle.static.nn.fc(paddle.reshape(rows, [-1, 8]), 1)
    loss = paddle.mean(paddle.nn.functional.square_error_cost(flat, label))
    return words, label, loss


def batch(generator):
    words = generator.integers(0, 50, (BATCH, 1)).astype("int64")
    return words, (words / 50.0).astype("float32")


def train(loss):
    exe = paddle.static.Executor(paddle.CPUPlace())
    exe.run(paddle.static.default_startup_program())
    fleet.init_worker()
    generator = np.random.default_rng(fleet.worker_index())
    seen = []
    for _ in range(EPOCHS):
        words, label = batch(generator)
        feed = {"words": words, "label": label}
        seen.append(float(exe.run(paddle.static.default_main_program(), feed=feed, fetch_list=[loss])[0]))
    first, last = np.mean(seen[:5]), np.mean(seen[-5:])
    print(f"trainer {fleet.worker_index()} of {fleet.worker_num()}: loss {first:.4f} -> {last:.4f}", flush=True)
    if "stop" in sys.argv:
        fleet.stop_worker()  # ends the servers, too
    else:
        os._exit(0)  # leaves the servers to the launcher; without this, Paddle's client crashes at the interpreter's exit


def main():
    paddle.enable_static()
    fleet.init(is_collective=False)
    _, _, loss = model()
    strategy = fleet.DistributedStrategy()
    strategy.a_sync = True
    optimizer = fleet.distributed_optimizer(paddle.optimizer.SGD(learning_rate=0.05), strategy)
    optimizer.minimize(loss)
    if fleet.is_server():
        print(f"server {fleet.server_index()} of {fleet.server_num()} at {os.environ['PADDLE_PORT']}", flush=True)
        fleet.init_server()
        fleet.run_server()
    else:
        train(loss)


if __name__ == "__main__":
    main()
