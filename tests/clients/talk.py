#!/usr/bin/env python3
"""The official clients against a node, unmodified. Every statement is an assertion; the exit code is the outcome.

talk.py CLIENT URL UPSTREAM  the whole conversation of that client (`openai`, `anthropic`) with the scripted provider
talk.py local URL MODEL      both clients with a real model
talk.py tokens URL TOKEN     both clients with and without a token
talk.py begin URL UPSTREAM   begins a response in the background, prints its id and the events so far
talk.py later URL FILE       reads the response of `begin` again: the same events, and how it went on
"""

import json
import sys
import urllib.request

import anthropic
import openai

TOOL = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
MODEL = "scripted/model-s"
ASKED = [{"role": "user", "content": "weather in Rome?"}]


def raises(kind, call):
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}")


def release(upstream):
    urllib.request.urlopen(urllib.request.Request(f"{upstream}/release", method="POST"), timeout=60).close()


def of_openai(url, key="not-a-token"):
    return openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0, timeout=60)


def of_anthropic(url, key="not-a-token"):
    return anthropic.Anthropic(base_url=url, api_key=key, max_retries=0, timeout=60)


def chat(url):
    client = of_openai(url)
    names = [model.id for model in client.models.list()]
    assert MODEL in names and "model-s" in names and "scripted-text" in names, names
    for name in (MODEL, "model-s", "scripted-text"):
        assert client.models.retrieve(name).id == name
    assert raises(openai.NotFoundError, lambda: client.models.retrieve("nobody/model-s")).code == "model_not_found"
    # Text and usage, at once and streamed.
    answer = client.chat.completions.create(model="scripted-text", messages=[{"role": "user", "content": "hi"}])
    assert answer.choices[0].message.content == "hello from upstream", answer
    assert answer._request_id, answer
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (5, 3), answer.usage
    stream = client.chat.completions.create(
        model=MODEL, messages=[{"role": "user", "content": "count 20"}], stream=True,
        stream_options={"include_usage": True})
    chunks = list(stream)
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == "".join(f"{n} " for n in range(20)), text
    assert chunks[-1].usage.completion_tokens == 20, chunks[-1]
    short = client.chat.completions.create(
        model=MODEL, max_completion_tokens=4, messages=[{"role": "user", "content": "count 20"}])
    assert short.choices[0].finish_reason == "length", short
    held_back = client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "filter it"}])
    assert held_back.choices[0].finish_reason == "content_filter", held_back
    # A tool, streamed, its result, and the answer.
    tools = [{"type": "function", "function": {"name": "weather", "description": "looks outside", "parameters": TOOL}}]
    with client.chat.completions.stream(model=MODEL, messages=ASKED, tools=tools) as stream:
        for _ in stream:
            pass
        message = stream.get_final_completion().choices[0].message
    call = message.tool_calls[0]
    assert (call.function.name, json.loads(call.function.arguments)) == ("weather", {"city": "Rome"}), call
    said = ASKED + [message, {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
    answer = client.chat.completions.create(model=MODEL, messages=said, tools=tools)
    assert answer.choices[0].message.content == "it is sunny in Rome", answer
    # Errors.
    fail = lambda status, stream: client.chat.completions.create(  # noqa: E731
        model=MODEL, stream=stream, messages=[{"role": "user", "content": f"fail {status}"}])
    for stream in (False, True):
        assert raises(openai.RateLimitError, lambda: fail(429, stream)).code == "rate_limited"
        assert raises(openai.InternalServerError, lambda: fail(500, stream)).status_code == 503
    error = raises(openai.NotFoundError, lambda: client.chat.completions.create(model="nobody", messages=ASKED))
    assert error.code == "model_not_found", error
    error = raises(openai.BadRequestError, lambda: client.chat.completions.create(model=MODEL, messages=ASKED, n=2))
    assert error.param == "n", error
    # An ability with two providers, of which the first one refuses: the caller says whether another may follow.
    either = lambda **more: client.chat.completions.create(  # noqa: E731
        model="either", messages=[{"role": "user", "content": "hi"}], **more)
    raises(openai.RateLimitError, either)
    fallback = {"sealog": {"routing": {"allow_fallback": True}}}
    assert either(extra_body=fallback).choices[0].message.content == "hello from upstream"
    # A key makes the same request the same execution.
    keyed = lambda: client.chat.completions.create(  # noqa: E731
        model=MODEL, messages=ASKED, extra_headers={"Idempotency-Key": "chat-1"})
    assert keyed().id == keyed().id


def not_served_by_openai(url, response):
    """`patient` would try a fault of the server's again, for longer than this test takes."""
    patient = openai.OpenAI(base_url=f"{url}/v1", api_key="not-a-token", max_retries=50, timeout=60)
    for call in [
        lambda: patient.embeddings.create(model=MODEL, input="hi"),
        lambda: patient.completions.create(model=MODEL, prompt="hi"),
        lambda: patient.moderations.create(input="hi"),
        lambda: patient.images.generate(model=MODEL, prompt="hi"),
        lambda: patient.files.list(),
        lambda: patient.chat.completions.list(),
        lambda: patient.responses.input_items.list(response),
        lambda: patient.responses.delete(response),
        lambda: patient.models.delete(MODEL),
    ]:
        assert raises(openai.NotFoundError, call).code == "endpoint_not_served"
    assert patient.responses.retrieve(response).id == response


def responses(url, upstream):
    client = of_openai(url)
    answer = client.responses.create(model=MODEL, input="hi", instructions="be brief")
    assert (answer.output_text, answer.status, answer.usage.output_tokens) == ("hello from upstream", "completed", 3)
    with client.responses.stream(model=MODEL, input="count 20") as stream:
        deltas = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
        final = stream.get_final_response()
    assert deltas == final.output_text == "".join(f"{n} " for n in range(20)), final
    with client.responses.stream(model=MODEL, input="filter it") as stream:
        last = list(stream)[-1]
    assert (last.type, last.response.status) == ("response.incomplete", "incomplete"), last
    kept = client.responses.retrieve(last.response.id)
    assert kept.incomplete_details.reason == last.response.incomplete_details.reason == "content_filter", kept
    # A tool and its result.
    tools = [{"type": "function", "name": "weather", "parameters": TOOL, "strict": False}]
    answer = client.responses.create(model=MODEL, input=ASKED, tools=tools)
    call = answer.output[0]
    assert (call.type, call.name, json.loads(call.arguments)) == ("function_call", "weather", {"city": "Rome"})
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
    answer = client.responses.create(model=MODEL, input=ASKED + [call, result], tools=tools)
    assert answer.output_text == "it is sunny in Rome", answer
    # In the background: cut in the middle, and resumed behind what was seen.
    seen = []
    stream = client.responses.create(model=MODEL, input="hold 10", background=True, stream=True)
    for event in stream:
        seen.append(event)
        if event.type == "response.output_text.delta" and event.delta == "4 ":
            break
    stream.close()
    identity = seen[0].response.id
    assert client.responses.retrieve(identity).status == "in_progress"
    release(upstream)
    rest = list(client.responses.retrieve(identity, stream=True, starting_after=seen[-1].sequence_number))
    numbers = [event.sequence_number for event in seen + rest]
    assert numbers == list(range(len(numbers))), numbers
    assert rest[-1].type == "response.completed", rest[-1]
    assert rest[-1].response.output_text == "".join(f"{n} " for n in range(10))
    kept = client.responses.retrieve(identity)
    assert (kept.status, kept.background, kept.model, kept.instructions, kept.tools) == (
        "completed", True, MODEL, None, []), kept
    # Cancelled, refused, failed.
    held = client.responses.create(model=MODEL, input="hold 10", background=True)
    assert held.status == "queued", held
    assert client.responses.cancel(held.id).status == "cancelled"
    assert client.responses.cancel(held.id).status == "cancelled"
    assert client.responses.cancel(identity).status == "completed"
    raises(openai.NotFoundError, lambda: client.responses.cancel("resp_unknown"))
    not_served_by_openai(url, identity)
    assert raises(openai.RateLimitError, lambda: client.responses.create(model=MODEL, input="fail 429")).status_code == 429
    error = raises(openai.BadRequestError, lambda: client.responses.create(
        model=MODEL, input="hi", previous_response_id=identity))
    assert error.param == "previous_response_id", error
    raises(openai.NotFoundError, lambda: client.responses.retrieve("resp_unknown"))
    raises(openai.NotFoundError, lambda: client.responses.create(model="nobody", input="hi"))


def messages(url, upstream):
    client = of_anthropic(url)
    assert MODEL in [model.id for model in client.models.list()]
    assert client.models.retrieve(MODEL).id == MODEL
    error = raises(anthropic.NotFoundError, lambda: client.models.retrieve("nobody"))
    assert error.body["error"]["type"] == "not_found_error", error.body
    patient = anthropic.Anthropic(base_url=url, api_key="not-a-token", max_retries=50, timeout=60)
    said = [{"role": "user", "content": "hi"}]
    for call in [
        lambda: patient.messages.count_tokens(model=MODEL, messages=said),
        lambda: patient.messages.batches.list(),
        lambda: patient.beta.files.list(),
    ]:
        assert raises(anthropic.NotFoundError, call).body["error"]["type"] == "not_found_error"
    create = lambda text, **more: client.messages.create(  # noqa: E731
        model=MODEL, max_tokens=100, messages=[{"role": "user", "content": text}], **more)
    answer = create("hi", system="be brief")
    assert (answer.content[0].text, answer.stop_reason) == ("hello from upstream", "end_turn"), answer
    assert answer._request_id, "the client looks for it in a header of its own"
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (5, 3), answer.usage
    assert create("filter it").stop_reason == "refusal"
    said = [{"role": "user", "content": "count 20"}]
    with client.messages.stream(model=MODEL, max_tokens=20, messages=said) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert text == "".join(f"{n} " for n in range(20)), text
    assert (final.usage.output_tokens, final.stop_reason) == (20, "max_tokens"), final
    # A tool, streamed, its result, and the answer.
    tools = [{"name": "weather", "description": "looks outside", "input_schema": TOOL}]
    with client.messages.stream(model=MODEL, max_tokens=100, messages=ASKED, tools=tools) as stream:
        final = stream.get_final_message()
    call = final.content[0]
    assert (call.type, call.name, call.input, final.stop_reason) == ("tool_use", "weather", {"city": "Rome"}, "tool_use")
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "sunny"}
    said = ASKED + [{"role": "assistant", "content": final.content}, {"role": "user", "content": [result]}]
    answer = client.messages.create(model=MODEL, max_tokens=100, messages=said, tools=tools)
    assert answer.content[0].text == "it is sunny in Rome", answer
    # Errors.
    raises(anthropic.RateLimitError, lambda: create("fail 429"))
    assert raises(anthropic.InternalServerError, lambda: create("fail 500")).status_code == 503
    raises(anthropic.RateLimitError, lambda: create("fail 429", stream=True))
    error = raises(anthropic.NotFoundError, lambda: client.messages.create(model="nobody", max_tokens=1, messages=ASKED))
    assert error.body["error"]["type"] == "not_found_error", error.body
    raises(anthropic.BadRequestError, lambda: create("hi", thinking={"type": "enabled", "budget_tokens": 1024}))
    keyed = lambda: create("hi", extra_headers={"Idempotency-Key": "messages-1"})  # noqa: E731
    assert keyed().id == keyed().id
    again(client, upstream)


def again(client, upstream):
    """Cut in the middle, and repeated with the same key: the same message, whole, from the one call to the upstream."""
    said = [{"role": "user", "content": "hold 10"}]
    repeat = lambda **more: client.messages.create(  # noqa: E731
        model=MODEL, max_tokens=100, messages=said, stream=True, extra_headers={"Idempotency-Key": "cut-1"}, **more)

    def until_the_middle(stream):
        seen = []
        for event in stream:
            seen.append(event.to_dict())
            if event.type == "content_block_delta" and event.delta.text == "4 ":
                return seen
        raise AssertionError(f"no middle: {seen}")

    stream = repeat()
    seen = until_the_middle(stream)
    stream.close()
    # The upstream says nothing more before it is released, and holds every call to it.
    stream = repeat()
    assert until_the_middle(stream) == seen
    release(upstream)
    whole = seen + [event.to_dict() for event in stream]
    kinds = [event["type"] for event in whole]
    assert (kinds.count("message_start"), kinds[0], kinds[-1]) == (1, "message_start", "message_stop"), kinds
    text = "".join(event["delta"]["text"] for event in whole if event["type"] == "content_block_delta")
    assert text == "".join(f"{n} " for n in range(10)), text
    # Ended, it is told once more, and the key stands for this request alone.
    assert [event.to_dict() for event in repeat()] == whole
    with client.messages.stream(
            model=MODEL, max_tokens=100, messages=said, extra_headers={"Idempotency-Key": "cut-1"}) as stream:
        message = stream.get_final_message()
    assert (message.id, message.content[0].text) == (whole[0]["message"]["id"], text), message
    raises(anthropic.BadRequestError, lambda: client.messages.create(
        model=MODEL, max_tokens=99, messages=said, extra_headers={"Idempotency-Key": "cut-1"}))


def local(url, model):
    said = [{"role": "user", "content": "Write one sentence about the sea."}]
    client = of_openai(url)
    stream = client.chat.completions.create(
        model=model, messages=said, max_tokens=16, temperature=0, seed=7, stream=True,
        stream_options={"include_usage": True})
    chunks = list(stream)
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices).strip()
    assert 1 <= chunks[-1].usage.completion_tokens <= 16, chunks[-1]
    answer = client.responses.create(model=model, input=said[0]["content"], max_output_tokens=16)
    assert answer.output_text.strip() and answer.usage.output_tokens <= 16, answer
    answer = of_anthropic(url).messages.create(model=model, max_tokens=16, messages=said)
    assert answer.content[0].text.strip() and answer.usage.output_tokens <= 16, answer


def tokens(url, token):
    said = [{"role": "user", "content": "hi"}]
    talk = [
        (openai, lambda key: of_openai(url, key).chat.completions.create(model=MODEL, messages=said)),
        (openai, lambda key: of_openai(url, key).responses.create(model=MODEL, input="hi")),
        (openai, lambda key: list(of_openai(url, key).models.list())),
        (anthropic, lambda key: of_anthropic(url, key).messages.create(model=MODEL, max_tokens=9, messages=said)),
        (openai, lambda key: of_openai(url, key).models.retrieve(MODEL)),
        (anthropic, lambda key: list(of_anthropic(url, key).models.list())),
        (anthropic, lambda key: of_anthropic(url, key).models.retrieve(MODEL)),
    ]
    for library, call in talk:
        raises(library.AuthenticationError, lambda: call("not-a-token"))
        assert call(token)


def begin(url):
    seen = []
    stream = of_openai(url).responses.create(model=MODEL, input="hold 10", background=True, stream=True)
    for event in stream:
        seen.append(event.to_dict())
        if event.type == "response.output_text.delta" and event.delta == "4 ":
            break
    stream.close()
    print(json.dumps({"id": seen[0]["response"]["id"], "seen": seen}))


def later(url, file):
    with open(file, encoding="utf-8") as begun:
        begun = json.load(begun)
    client = of_openai(url)
    told = [event.to_dict() for event in client.responses.retrieve(begun["id"], stream=True)]
    count = len(begun["seen"])
    assert told[:count] == begun["seen"], "a restart changes what was told"
    assert told[-1]["type"] == "response.failed" and told[-1]["response"]["status"] == "failed", told[-1]
    rest = client.responses.retrieve(begun["id"], stream=True, starting_after=count - 1)
    assert [event.to_dict() for event in rest] == told[count:]
    kept = client.responses.retrieve(begun["id"])
    assert (kept.status, kept.model, kept.background) == ("failed", MODEL, True), kept


what, url, *more = sys.argv[1:]
if what == "openai":
    chat(url)
    responses(url, more[0])
elif what == "anthropic":
    messages(url, more[0])
else:
    {"local": local, "tokens": tokens, "begin": begin, "later": later}[what](url, *more)
