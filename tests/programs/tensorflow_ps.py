"""TensorFlow's parameter servers: the chief trains a line on all workers; workers and servers serve until they are ended."""

import json
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import tensorflow as tf

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
kind, index = resolver.task_type, resolver.task_id
if kind in ("worker", "ps"):
    server = tf.distribute.Server(resolver.cluster_spec(), job_name=kind, task_index=index, protocol="grpc")
    print("serving", kind, index, flush=True)
    server.join()

strategy = tf.distribute.ParameterServerStrategy(resolver)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    slope = tf.Variable(0.0)


@tf.function
def step(x):
    def train():
        with tf.GradientTape() as tape:
            loss = (slope * x - 3.0 * x) ** 2
        slope.assign_sub(0.1 * tape.gradient(loss, slope))
        return loss

    return strategy.run(train)


for _ in range(20):
    coordinator.schedule(step, args=(tf.constant(1.0),))
coordinator.join()
cluster = json.loads(os.environ["TF_CONFIG"])["cluster"]
sizes = " ".join(f"{kind}={len(cluster[kind])}" for kind in ("chief", "worker", "ps"))
where = "ps" if "/job:ps/" in slope.device else slope.device
print(f"chief: {sizes} slope {float(slope.read_value()):.2f} on {where}", flush=True)
