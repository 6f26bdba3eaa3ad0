"""Fits a line with Keras, mirrored over all workers of the job; Corral sets TF_CONFIG.

Keras 3 cannot fit under a multi-worker strategy, so this uses Keras 2 as `tf_keras`.
"""

from __future__ import annotations

import json
import os

import numpy as np
import tensorflow as tf
import tf_keras as keras

strategy = tf.distribute.MultiWorkerMirroredStrategy()  # before any other operation of TensorFlow
me = json.loads(os.environ["TF_CONFIG"])["task"]

inputs = np.random.default_rng(7).uniform(-1, 1, size=(512, 4)).astype("float32")
slope = np.array([1.0, -2.0, 3.0, 0.5], dtype="float32")
targets = inputs @ slope + 1

with strategy.scope():
    model = keras.Sequential([keras.layers.Dense(1, input_shape=(4,))])
    model.compile(optimizer=keras.optimizers.SGD(0.3), loss="mse")

data = tf.data.Dataset.from_tensor_slices((inputs, targets[:, None])).repeat().batch(64)
history = model.fit(data, epochs=5, steps_per_epoch=16, verbose=0)
loss = history.history["loss"][-1]
print(f"{me['type']} {me['index']} of {strategy.num_replicas_in_sync}: loss {loss:.6f}", flush=True)
raise SystemExit(0 if loss < 0.01 else 1)
