# SPDX-License-Identifier: BSD-3-Clause
"""A rank that wants too much of canele-run's PMI-1 server; prints what it gets.

Usage: greedy_rank.py values|line|questions
Run by launchers_test.py, under canele-run --pmi1 -n 1. With "questions" it reads no answer until it can ask no more.
The server must then wait for it, and neither keep everything in memory nor lose anything.
"""
import os
import socket
import sys

QUESTIONS = 20000


class Server:
    def __init__(self):
        self.socket = socket.socket(fileno=int(os.environ["PMI_FD"]))
        self.answers = self.socket.makefile("r")
        self.ask("cmd=init pmi_version=1 pmi_subversion=1")
        self.space = self.ask("cmd=get_my_kvsname")["kvsname"]

    def ask(self, line):
        self.socket.sendall(line.encode() + b"\n")
        return self.answer()

    def answer(self):
        return dict(word.split("=", 1) for word in self.answers.readline().split())

    def put(self, key, value):
        return self.ask(f"cmd=put kvsname={self.space} key={key} value={value}")


def values(server):
    """Puts a value that is too long, and too many values."""
    print(server.put("long", "x" * 1024)["msg"])
    count = 0
    while (answer := server.put(count, "x" * 1000))["rc"] == "0":
        count += 1
    print(answer["msg"] if 4000 < count < 5000 else f"it took {count} KB")


def line(server):
    """Sends a line that does not end."""
    try:
        server.socket.sendall(b"x" * 1000000)
        print("it took a line of a million characters" if server.answers.read(1) else "closed")
    except OSError:
        print("closed")


def questions(server):
    """Asks without reading until the server takes no more; then reads."""
    server.put("k", "v" * 1000)
    text = f"cmd=get kvsname={server.space} key=k\n".encode()
    stream = text * QUESTIONS
    sent, held_up = 0, False
    while not held_up and sent < len(stream):
        try:
            sent += server.socket.send(stream[sent : sent + 65536], socket.MSG_DONTWAIT)
        except BlockingIOError:
            held_up = True
    asked = sent // len(text)
    right = sum(server.answer().get("value") == "v" * 1000 for _ in range(asked))
    print("held up" if held_up else "never held up")
    print("all answered" if right == asked else f"{right} of {asked} answered")


if __name__ == "__main__":
    {"values": values, "line": line, "questions": questions}[sys.argv[1]](Server())
