#!/usr/bin/env python3
"""A scripted upstream that speaks OpenAI's chat completions, for the tests of the official clients.

What it answers is said by the last message: `sunny` as the result of a tool is repeated, `fail STATUS` is refused with
that status, `count N` is N words, `hold N` is N words with a wait in the middle until a POST to /release. With tools
and no result of one it calls the first tool. The model `refusing` is always refused with 429. Standard output is its port, and nothing else. Standard library only.
"""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# How often /release was asked for; everything that was held by then goes on, also what nobody waits for any more.
releases = 0
turn = threading.Condition()
key = sys.argv[1]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def refuse(self, status):
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.path == "/release":
            global releases
            with turn:
                releases += 1
                turn.notify_all()
            return self.refuse(204)
        # The caller's own key must never come here.
        if self.headers.get("authorization") != f"Bearer {key}":
            return self.refuse(418)
        self.answer(json.loads(body))

    def answer(self, asked):
        last = asked["messages"][-1]
        text = last["content"] if isinstance(last["content"], str) else ""
        word, _, number = text.partition(" ")
        if asked["model"] == "refusing":
            return self.refuse(429)
        if word == "fail":
            return self.refuse(int(number))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        words = 0
        reason = "stop"
        if last["role"] == "tool":
            words = self.say([f"it is {text}", " in Rome"])
        elif word in ("count", "hold"):
            half = int(number) // 2
            # Before the first word: whoever has read that one can release this.
            before = releases
            words = self.say([f"{n} " for n in range(half)])
            if word == "hold":
                with turn:
                    turn.wait_for(lambda: releases > before)
            words += self.say([f"{n} " for n in range(half, int(number))])
        elif word == "filter":
            reason = "content_filter"
            words = self.say(["I can"])
        elif asked.get("tools"):
            reason = "tool_calls"
            name = asked["tools"][0]["function"]["name"]
            for fragment in [
                {"index": 0, "id": "call_1", "type": "function", "function": {"name": name, "arguments": ""}},
                {"index": 0, "function": {"arguments": '{"city":'}},
                {"index": 0, "function": {"arguments": '"Rome"}'}},
            ]:
                self.chunk({"tool_calls": [fragment]})
        else:
            words = self.say(["hello", " from", " upstream"])
        limit = asked.get("max_tokens") or words
        if words and words >= (asked.get("max_tokens") or words + 1):
            reason = "length"
        self.chunk({}, reason)
        usage = {"prompt_tokens": 5, "completion_tokens": min(words, limit), "total_tokens": 5 + words}
        self.event(json.dumps({"choices": [], "usage": usage}))
        self.event("[DONE]")

    def say(self, words):
        for word in words:
            self.chunk({"content": word})
        return len(words)

    def chunk(self, delta, reason=None):
        self.event(json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}))

    def event(self, data):
        self.wfile.write(f"data: {data}\n\n".encode())
        self.wfile.flush()


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(server.server_address[1], flush=True)
server.serve_forever()
