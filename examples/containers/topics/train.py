#!/usr/bin/env python3
"""Trains a classifier of customers' messages and saves it as topics.skops, beside model.py."""

import pathlib

import skops.io
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

MESSAGES = {
    "billing": ["I was charged twice for the same order", "please send me the invoice for march",
                "my credit card was declined", "the price on the bill is higher than in the shop",
                "when do I get the money back", "I want a refund for the second payment"],
    "delivery": ["my parcel has not arrived yet", "the package was left at the wrong address",
                 "where is my order, the tracking number does not work", "can you deliver on saturday",
                 "the courier did not ring the bell", "delivery takes longer than promised"],
    "login": ["I cannot log in with my password", "the reset link in the mail has expired",
              "my account is locked after three attempts", "how do I change my user name",
              "the code for signing in never arrives", "please delete my account"],
    "product": ["the screen of the phone is broken", "the battery is empty after an hour",
                "the shoes are too small", "does this lamp work with a dimmer",
                "one of the headphones is silent", "the zip of the jacket is broken"],
}

texts = [text for topic in MESSAGES.values() for text in topic]
labels = [topic for topic, messages in MESSAGES.items() for _ in messages]
classifier = make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), LinearSVC()).fit(texts, labels)
path = pathlib.Path(__file__).with_name("topics.skops")
skops.io.dump(classifier, path)
print(f"{path}: knows {', '.join(classifier.classes_)}")
