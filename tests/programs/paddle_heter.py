"""A model on heterogeneous parameter servers, as far as PaddlePaddle 2.6.2 goes; docs/modes.md says where that is.

The embedding and the dense layer are the trainers', the loss is the second stage's. Needs FLAGS_LAUNCH_BARRIER=0: else
trainers wait for a port that the second stage never opens.
"""

import os
import sys
import time

import paddle
from paddle.distributed import fleet

ROLE = os.environ["TRAINING_ROLE"]


def say(step):
    print(f"{ROLE} of stage {os.environ.get('STAGE_ID', 'none')}: {step}", flush=True)


def model():
    with paddle.static.device_guard("cpu"):
        words = paddle.static.data("words", [None, 1], "int64")
        label = paddle.static.data("label", [None, 1], "float32")
        rows = paddle.static.nn.sparse_embedding(words, size=[100, 8], param_attr=paddle.ParamAttr(name="table"))
        flat = paddle.reshape(rows, [-1, 8])
        flat = flat if "dense-behind" in sys.argv else paddle.static.nn.fc(flat, 1)
    with paddle.static.device_guard("gpu"):  # the name of the other stage, whatever its device
        flat = paddle.static.nn.fc(flat, 1) if "dense-behind" in sys.argv else flat
        return paddle.mean(paddle.nn.functional.square_error_cost(flat, label))


def optimize(loss):
    strategy = fleet.DistributedStrategy()
    strategy.a_sync = True
    strategy.pipeline = True
    strategy.pipeline_configs = {"accumulate_steps": 1, "micro_batch_size": 32}
    fleet.distributed_optimizer(paddle.optimizer.SGD(learning_rate=0.05), strategy).minimize(loss)


def main():
    mark = sys.argv[1]  # says, with an ending, that servers serve and that the second stage has got to its end
    paddle.enable_static()
    fleet.init(is_collective=False)
    loss = model()
    try:
        optimize(loss)
    except AttributeError as error:
        say(f"minimize: {error}")
        return
    if ROLE == "PSERVER":
        fleet.init_server()
        say("serves")
        open(f"{mark}.server", "w").close()
        fleet.run_server()
        return
    exe = paddle.static.Executor(paddle.CPUPlace())
    exe.run(paddle.static.default_startup_program())
    fleet.init_worker()
    say("init_worker")
    if ROLE == "HETER_TRAINER":
        try:
            exe.train_from_dataset(program=loss.block.program)
        except RuntimeError as error:
            say(f"train_from_dataset: {error}")
        open(f"{mark}.stage", "w").close()
        time.sleep(300)
    deadline = time.monotonic() + 60
    while not all(os.path.exists(f"{mark}.{who}") for who in ("server", "stage")) and time.monotonic() < deadline:
        time.sleep(0.05)
    os._exit(0)  # Paddle's client crashes at the interpreter's exit


if __name__ == "__main__":
    main()
