"""TensorFlow finds its world in TF_CONFIG; all replicas add up their numbers."""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
rank = strategy.cluster_resolver.task_id


@tf.function
def total():
    return strategy.run(
        lambda: tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, tf.constant(float(rank)))
    )


os.write(1, f"hello {rank} {strategy.num_replicas_in_sync} {int(total())}\n".encode())
