#!/usr/bin/env python3
"""Trains a classifier of handwritten digits and saves it as digits.skops, beside model.py."""

import pathlib

import skops.io
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

images, labels = load_digits(return_X_y=True)
images, test_images, labels, test_labels = train_test_split(images, labels, random_state=1)
classifier = make_pipeline(StandardScaler(), LogisticRegression()).fit(images, labels)
path = pathlib.Path(__file__).with_name("digits.skops")
skops.io.dump(classifier, path)
print(f"{path}: {classifier.score(test_images, test_labels):.1%} of {len(test_labels)} digits are right")
