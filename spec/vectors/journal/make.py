#!/usr/bin/env python3
"""Writes the vectors beside it from the text of spec/journal.md.

A second implementation on purpose: it shares nothing with the product's codec, so an error has to be made twice to
pass. Run it after a change of the format and look at the difference; a vector that was released is never changed.
Needs only the standard library.
"""

import hashlib
import pathlib
import zlib

HERE = pathlib.Path(__file__).parent


def le(size, value):
    return value.to_bytes(size, "little")


def crc(data):
    return le(4, zlib.crc32(data))


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def zigzag(value):
    return varint(value * 2 if value >= 0 else -value * 2 - 1)


def pad(data):
    return data + bytes(-len(data) % 64)


def hex_text(data):
    """Rows of 32 bytes; a run of 64 or more equal bytes as `xx*length`."""
    rows, row, at = [], [], 0
    while at < len(data):
        run = at
        while run < len(data) and data[run] == data[at]:
            run += 1
        if run - at >= 64:
            if row:
                rows.append(" ".join(row))
                row = []
            rows.append(f"{data[at]:02x}*{run - at}")
            at = run
            continue
        row.append(f"{data[at]:02x}")
        at += 1
        if len(row) == 32:
            rows.append(" ".join(row))
            row = []
    if row:
        rows.append(" ".join(row))
    return "\n".join(rows)


written = set()


def vector(name, expect, what, comment, data, **extra):
    """One file. `extra`: records, slot, fields (a string), record (a list of strings)."""
    assert name not in written, name
    written.add(name)
    lines = [f"expect: {expect}", f"what: {what}", f"comment: {comment}"]
    for key in ("records", "slot", "fields"):
        if key in extra:
            lines.append(f"{key}: {extra[key]}")
    lines += [f"record: {record}" for record in extra.get("record", [])]
    text = "\n".join(lines) + "\n\n" + hex_text(data) + "\n"
    (HERE / f"{name}.txt").write_text(text)


def change(data, at, value):
    value = bytes([value]) if isinstance(value, int) else value
    return data[:at] + value + data[at + len(value):]


# --- store (section 3) -----------------------------------------------------------------------------------------------

STORE_ID = bytes(range(0x10, 0x20))


def store_signed(first_92):
    front = first_92 + crc(first_92)
    return front + hashlib.sha256(front).digest()


STORE_92 = b"SEALOGST" + le(2, 1) + le(2, 128) + bytes(4) + STORE_ID + le(8, 1_767_225_600_123) + bytes(52)
STORE = store_signed(STORE_92)
assert len(STORE) == 128


def stores():
    def put(name, expect, comment, data, **extra):
        vector(f"store-{name}", expect, "store", comment, data, **extra)

    put("good", "ok", "JF-1 the whole file", STORE, fields=f"store_id={STORE_ID.hex()} created_ms=1767225600123")
    put("magic", "magic", "JF-1 magic of a head slot", store_signed(b"SEALOGHD" + STORE_92[8:]))
    put("crc", "crc", "JF-1 one bit of the creation time", change(STORE, 33, STORE[33] ^ 4))
    put("newer", "newer", "JF-1 version 2, otherwise right", store_signed(change(STORE_92, 8, 2)))
    put("version-0", "out-of-range", "JF-1 there is no version 0", store_signed(change(STORE_92, 8, 0)))
    put("length", "out-of-range", "JF-1 length field 129", store_signed(change(STORE_92, 10, 129)))
    put("not-zero", "not-zero", "JF-1 a byte of the reserved part", store_signed(change(STORE_92, 91, 1)))
    put("digest", "digest", "JF-1 one bit of the SHA-256", change(STORE, 127, STORE[127] ^ 0x80))
    put("short", "short", "JF-1 one byte is missing", STORE[:-1])
    put("trailing", "trailing", "JF-1 one byte too many", STORE + b"\0")


# --- head slots (section 4) ------------------------------------------------------------------------------------------

KEY_ID = bytes(range(0x40, 0x50))
LINEAGE = bytes(range(0x50, 0x60))
BEFORE = bytes(range(0x60, 0x70))
CHAIN = bytes(range(0x70, 0x80))
MAC = bytes(range(0x80, 0xA0))


def head_slot(counter=7, segment=3, frames=11, last=205, chain=CHAIN, state=1, version=1, length=512, patch=None):
    sealed = b"SEALOGHD" + le(2, version) + le(2, length) + bytes(4) + le(8, counter) + KEY_ID + STORE_ID + LINEAGE
    sealed += le(8, 2) + le(8, segment) + le(8, frames) + le(8, last) + chain + le(1, state) + bytes(7)
    assert len(sealed) == 128
    signed = sealed + MAC
    if patch:
        signed = change(signed, *patch)
    return signed + crc(signed) + bytes(4096 - 164)


def heads():
    def put(name, expect, comment, data, slot=4096, **extra):
        vector(f"head-slot-{name}", expect, "head-slot", comment, data, slot=slot, **extra)

    ids = f"key_id={KEY_ID.hex()} store_id={STORE_ID.hex()} lineage={LINEAGE.hex()} epoch=2"
    rest = f"segment=3 frames=11 last_sequence=205 chain={CHAIN.hex()}"
    put("odd", "ok", "JF-2 odd counter in slot B, open", head_slot(), fields=f"counter=7 {ids} {rest} state=1 mac={MAC.hex()}")
    put("even", "ok", "JF-2 even counter in slot A, closed", head_slot(counter=8, state=2), slot=0, fields=f"counter=8 {ids} {rest} state=2")
    none = head_slot(counter=1, segment=0, frames=0, last=0, chain=bytes(16))
    put("no-segment", "ok", "JF-2 before the first segment", none, fields="counter=1 segment=0 frames=0 last_sequence=0")
    put("crc", "crc", "JF-2 one bit of the chain value", change(head_slot(), 110, head_slot()[110] ^ 1))
    put("torn", "crc", "JF-2 never written", bytes(4096))
    put("magic", "magic", "JF-2 magic of a store", head_slot(patch=(6, b"ST")))
    put("newer", "newer", "JF-2 version 3", head_slot(version=3))
    put("length", "out-of-range", "JF-2 slot length 4096", head_slot(length=4096))
    put("zeros-sealed", "not-zero", "JF-2 a byte behind the state", head_slot(patch=(127, 1)))
    put("zeros-behind", "not-zero", "JF-2 the last byte of the slot", change(head_slot(), 4095, 1))
    put("parity", "mismatch", "JF-2 odd counter in slot A", head_slot(), slot=0)
    put("counter-0", "out-of-range", "JF-2 counters begin at 1", head_slot(counter=0), slot=0)
    put("state", "out-of-range", "JF-2 state 3", head_slot(state=3))
    put("count-without-segment", "not-zero", "JF-2 frames of no segment", head_slot(segment=0, last=0, chain=bytes(16)))
    put("short", "short", "JF-2 the written part alone", head_slot()[:512])


# --- end records (section 5) -----------------------------------------------------------------------------------------


def end_record(segment=2, frames=3, offset=8192 + 480, last=17, chain=CHAIN, how=1, tail=bytes(15)):
    data = le(8, segment) + le(8, frames) + le(8, offset) + le(8, last) + chain + le(1, how) + tail
    assert len(data) == 64
    return data


def ends():
    def put(name, expect, comment, data, **extra):
        vector(f"end-{name}", expect, "end", comment, data, **extra)

    fields = f"segment=2 frames=3 end_offset=8672 last_sequence=17 chain={CHAIN.hex()}"
    put("sealed", "ok", "JF-9 a sealed segment", end_record(), fields=f"{fields} how=1")
    put("cut", "ok", "JF-9 cut at recovery", end_record(how=2), fields=f"{fields} how=2")
    put("none", "ok", "JF-9 there is no predecessor", bytes(64), fields="segment=0 frames=0 how=0")
    put("how-0", "mismatch", "JF-9 how 0 with a segment", end_record(how=0))
    put("how-3", "out-of-range", "JF-9 how 3", end_record(how=3))
    put("number-0", "mismatch", "JF-9 how 1 without a segment", end_record(segment=0))
    put("none-with-sequence", "not-zero", "JF-9 no segment, yet a sequence", change(bytes(64), 24, 1))
    put("tail", "not-zero", "JF-9 a byte of the reserved part", end_record(tail=bytes(14) + b"\1"))
    put("offset", "out-of-range", "JF-9 an end at an offset where no frame can end", end_record(offset=8680))
    put("frames", "mismatch", "JF-9 more frames than the offset has room for", end_record(frames=4))
    put("short", "short", "JF-9 63 bytes", end_record()[:63])
    put("trailing", "trailing", "JF-9 65 bytes", end_record() + b"\0")


# --- segment headers (section 5) -------------------------------------------------------------------------------------

SALT, SEALED = bytes(range(0xA0, 0xC0)), bytes(range(0xC0, 0xE0))
TAG, CHECK = bytes(range(0xE0, 0xF0)), bytes(range(0x00, 0x20))


def segment_header(number=5, first=None, last=None, kind=1, generation=0, link_in=bytes(64), link_out=bytes(64), version=1,
                   length=4096, suite=1, codec=1, lineage=LINEAGE, epoch=4, patch=None):
    first = number if first is None else first
    last = first if last is None else last

    def patched(data, start):
        if patch and start <= patch[0] < start + len(data):
            return change(data, patch[0] - start, patch[1])
        return data

    fixed = b"SEALOGSG" + le(2, version) + le(2, length) + bytes(4) + STORE_ID + le(8, number) + bytes(20)
    fixed = patched(fixed, 0)
    body = le(2, suite) + le(2, codec) + le(1, kind) + bytes(3) + lineage + BEFORE + le(8, epoch) + le(8, 1_767_225_600_456)
    body += KEY_ID + SALT + SEALED + TAG + CHECK + le(8, first) + le(8, last) + le(8, generation) + link_in + link_out + bytes(3692)
    front = fixed + crc(fixed) + patched(body, 64)
    assert len(front) == 4092
    return front + crc(front)


COMPACTED = dict(number=3, last=6, kind=2, generation=2, link_in=end_record(), link_out=end_record(segment=6, how=2))


def segments():
    def put(name, expect, comment, data, **extra):
        vector(f"segment-header-{name}", expect, "segment-header", comment, data, **extra)

    ids = f"store_id={STORE_ID.hex()} lineage={LINEAGE.hex()} predecessor_lineage={BEFORE.hex()} key_id={KEY_ID.hex()}"
    wrap = f"salt={SALT.hex()} sealed={SEALED.hex()} tag={TAG.hex()} check={CHECK.hex()}"
    rest = "suite=1 codec=1 epoch=4 created_ms=1767225600456"
    log = segment_header()
    put("log", "ok", "JF-4 a log segment", log, fields=f"number=5 kind=1 range_last=5 generation=0 {ids} {wrap} {rest} link_in=0 link_out=0")
    first = segment_header(number=1, epoch=1)
    put("first", "ok", "JF-4 the first segment", first, fields="number=1 epoch=1 range_last=1")
    put("compacted", "ok", "JF-14 a compacted segment", segment_header(**COMPACTED), fields=f"number=3 kind=2 range_last=6 generation=2 {ids} {wrap} {rest} link_in=2 link_out=6")
    put("fixed-crc", "crc", "JF-4 one bit of the segment number", change(log, 32, log[32] ^ 1))
    put("whole-crc", "crc", "JF-4 one bit of the wrapped key", change(log, 170, log[170] ^ 1))
    put("whole-crc-zeros", "crc", "JF-4 one bit of the reserved part", change(log, 3000, 1))
    put("magic", "magic", "JF-4 magic of a store", segment_header(patch=(6, b"ST")))
    put("newer", "newer", "JF-4 version 2; the rest may mean anything", change(segment_header(version=2), 64, b"\xee" * 64))
    put("version-0", "out-of-range", "JF-4 there is no version 0", segment_header(version=0))
    put("suite", "unsupported", "JF-4 suite 2, told before the CRC of the whole", change(log, 64, 2))
    put("codec", "unsupported", "JF-4 record codec 2", segment_header(codec=2))
    put("length", "out-of-range", "JF-4 header length 4097", segment_header(length=4097))
    put("kind", "out-of-range", "JF-4 kind 3", segment_header(kind=3))
    for at in (12, 59, 71, 400, 4091):
        put(f"zeros-{at}", "not-zero", f"JF-4 byte {at} is reserved", segment_header(patch=(at, 1)))
    put("number-0", "out-of-range", "JF-4 numbers begin at 1", segment_header(number=0))
    put("lineage", "out-of-range", "JF-4 a writer has a lineage id", segment_header(lineage=bytes(16)))
    put("epoch", "out-of-range", "JF-4 epochs begin at 1", segment_header(epoch=0))
    put("range-first", "mismatch", "JF-4 range first is the segment number", segment_header(first=4, last=5))
    put("log-range", "mismatch", "JF-4 a log segment is a range of one", segment_header(last=6))
    put("log-generation", "not-zero", "JF-4 a log segment has no generation", segment_header(generation=1))
    put("log-link", "not-zero", "JF-4 a log segment has no link-in", segment_header(link_in=end_record()))
    put("generation-0", "out-of-range", "JF-14 a compacted segment has a generation", segment_header(**{**COMPACTED, "generation": 0}))
    put("range-turned", "out-of-range", "JF-14 a range that ends before it begins", segment_header(**{**COMPACTED, "last": 2}))
    put("link-in", "mismatch", "JF-14 link-in names a segment of the range", segment_header(**{**COMPACTED, "link_in": end_record(segment=3)}))
    put("link-out", "mismatch", "JF-14 link-out names none of the range", segment_header(**{**COMPACTED, "link_out": end_record(segment=7)}))
    put("link-bytes", "not-zero", "JF-14 a reserved byte of link-out", segment_header(**{**COMPACTED, "link_out": end_record(segment=6, tail=b"\1" + bytes(14))}))
    put("short", "short", "JF-4 the last byte is missing", log[:-1])


# --- frame headers (section 5.1) -------------------------------------------------------------------------------------


def frame_header(length=192, index=9, kind=1, flags=0, first=100, count=3, synced=99, patch=None):
    data = b"\x53\x4c\xf7\x01" + le(4, length) + le(4, index) + le(1, kind) + le(1, flags) + bytes(2) + le(8, first) + le(4, count)
    data += le(4, 0x89ABCDEF) + le(8, synced) + CHAIN + TAG + MAC[:16] + bytes(4)
    assert len(data) == 92
    if patch:
        data = change(data, *patch)
    return data + crc(data)


def frames():
    def put(name, expect, comment, data, **extra):
        vector(f"frame-header-{name}", expect, "frame-header", comment, data, **extra)

    tags = f"previous_chain={CHAIN.hex()} body_crc=2309737967 body_tag={TAG.hex()} header_tag={MAC[:16].hex()}"
    put("group", "ok", "JF-7 a group", frame_header(), fields=f"body_length=192 index=9 kind=1 first_sequence=100 record_count=3 synced_through=99 {tags}")
    put("link", "ok", "JF-9 frame 0 of a log segment", frame_header(length=64, index=0, kind=2, count=0), fields="body_length=64 index=0 kind=2 record_count=0")
    put("seal", "ok", "JF-9 the last frame", frame_header(length=64, kind=3, count=0), fields="kind=3 index=9")
    put("folded", "ok", "JF-14 a folded group", frame_header(kind=4), fields="kind=4")
    put("sources", "ok", "JF-14 frame 0 of a compacted segment", frame_header(index=0, kind=5, count=0), fields="kind=5 index=0")
    longest = (4 << 20) + (64 << 10)
    put("longest", "ok", "JF-11 body and record count at their limits", frame_header(length=longest, count=65536), fields=f"body_length={longest} record_count=65536")
    good = frame_header()
    put("magic", "magic", "JF-7 one bit of the magic", change(good, 3, 0))
    put("crc", "crc", "JF-7 one bit of the header tag", change(good, 80, good[80] ^ 1))
    put("flags", "not-zero", "JF-7 flags are zero", frame_header(flags=1))
    put("zeros-14", "not-zero", "JF-7 byte 14 is reserved", frame_header(patch=(14, 1)))
    put("zeros-91", "not-zero", "JF-7 byte 91 is reserved", frame_header(patch=(91, 1)))
    put("kind-0", "out-of-range", "JF-9 kind 0", frame_header(kind=0))
    put("kind-6", "out-of-range", "JF-9 kind 6", frame_header(kind=6))
    put("length-0", "out-of-range", "JF-7 a body is never empty", frame_header(length=0))
    put("length-odd", "out-of-range", "JF-7 a body length that is no multiple of 64", frame_header(length=100))
    put("too-long", "too-long", "JF-11 a body past its limit", frame_header(length=longest + 64))
    put("too-many", "too-long", "JF-11 65 537 records", frame_header(count=65537))
    put("sequence-0", "out-of-range", "JF-13 sequences begin at 1", frame_header(first=0))
    put("sequence-end", "out-of-range", "JF-13 sequences that overflow", frame_header(first=2**64 - 3))
    put("link-elsewhere", "mismatch", "JF-9 a link that is not frame 0", frame_header(length=64, kind=2, count=0))
    put("group-first", "mismatch", "JF-9 a group as frame 0", frame_header(index=0))
    put("group-empty", "mismatch", "JF-9 a group without a record", frame_header(count=0))
    put("seal-counts", "mismatch", "JF-9 a seal with a record", frame_header(length=64, kind=3, count=1))
    put("seal-long", "mismatch", "JF-9 a seal whose body is longer than an end record", frame_header(length=128, kind=3, count=0))
    put("short", "short", "JF-7 95 bytes", good[:95])


# --- groups (section 5.2) --------------------------------------------------------------------------------------------

BASE = 1_767_225_600_000
A, B = bytes([0xAA]) * 16, bytes([0xBB]) * 16


def record(kind=64, klass=0, stream=b"\0", event=1, time=0, logical=5, body=b"hello", length=None):
    length = varint(len(body)) if length is None else length
    return varint(kind) + le(1, klass) + stream + varint(event) + zigzag(time) + varint(logical) + length + body


def group(*records, base=BASE):
    return pad(varint(base) + b"".join(records))


def shown(kind=64, klass=0, stream="-", event=1, time=BASE, logical=5, body=b"hello"):
    return f"kind={kind} class={klass} stream={stream} event={event} time={time} logical={logical} body={body.hex() or '-'}"


def groups():
    def put(name, expect, comment, data, records=1, **extra):
        vector(f"group-{name}", expect, "group", comment, data, records=records, **extra)

    put("one", "ok", "JF-12 one record without a stream", group(record()), record=[shown()])
    many = group(
        record(klass=9, stream=b"\1" + A, event=0, body=b"\0" * 7),
        record(kind=80, stream=b"\2", event=1, time=1, body=b""),
        record(kind=65535, klass=1, stream=b"\1" + B, event=300, time=-1, logical=2**64 - 1),
        record(kind=90, klass=2, stream=b"\3", time=64, logical=0),
        record(kind=83, stream=b"\2", event=2**64 - 1, time=-64),
        base=BASE,
    )
    put("streams", "ok", "JF-12 new streams and references to them", many, records=5, record=[
        shown(klass=9, stream=A.hex(), event=0, body=b"\0" * 7),
        shown(kind=80, stream=A.hex(), time=BASE + 1, body=b""),
        shown(kind=65535, klass=1, stream=B.hex(), event=300, time=BASE - 1, logical=2**64 - 1),
        shown(kind=90, klass=2, stream=B.hex(), time=BASE + 64, logical=0),
        shown(kind=83, stream=A.hex(), event=2**64 - 1, time=BASE - 64),
    ])
    ids = [bytes([number, 0x5A]) + bytes(14) for number in range(130)]
    wide = group(*[record(stream=b"\1" + stream, body=b"") for stream in ids], record(stream=varint(131), body=b""))
    put("two-byte-reference", "ok", "JF-12 a reference past 127", wide, records=131,
        record=[shown(stream=stream.hex(), body=b"") for stream in ids] + [shown(stream=ids[129].hex(), body=b"")])
    exact = record(body=b"x" * (64 - 6 - 7))
    put("exact", "ok", "JF-12 a group that needs no padding", group(exact), record=[shown(body=b"x" * 51)])
    times = group(record(time=2**63 - 1), record(time=0), base=0)
    put("times", "ok", "JF-12 first and last time there can be", times, records=2, record=[shown(time=2**63 - 1), shown(time=0)])
    forget = record(kind=1, klass=4, event=0, logical=0, body=b"\2" + A + B)
    restored = end_record() + le(8, BASE) + b"\1" + bytes(7)
    own = group(forget, record(kind=2, event=0, logical=0, body=restored), record(kind=3, event=0, logical=0, body=b""))
    put("own-kinds", "ok", "JF-12 the journal's own kinds", own, records=3, record=[
        shown(kind=1, klass=4, event=0, logical=0, body=b"\2" + A + B),
        shown(kind=2, event=0, logical=0, body=restored),
        shown(kind=3, event=0, logical=0, body=b""),
    ])
    put("count-below", "not-zero", "JF-12 a record more than the header counts", group(record(), record()))
    put("count-above", "out-of-range", "JF-12 a record fewer than the header counts", group(record()), records=2)
    put("count-impossible", "short", "JF-11 more records than the bytes can hold", group(record()), records=65536)
    put("count-0", "out-of-range", "JF-12 no record", group(record()), records=0)
    put("padding-not-zero", "not-zero", "JF-12 a byte behind the last record", group(record())[:-1] + b"\1")
    put("padding-long", "trailing", "JF-12 64 zeros too many", group(record()) + bytes(64))
    put("unaligned", "out-of-range", "JF-7 a length that no body has", group(record()) + b"\0")
    put("empty", "out-of-range", "JF-7 nothing at all", b"")
    put("base-not-minimal", "not-minimal", "JF-12 a base time with a needless byte", pad(b"\x85\0" + record()))
    put("base-late", "out-of-range", "JF-12 a base time past 2^63 - 1", group(record(), base=2**63))
    put("varint-eleven", "too-long", "JF-12 a number of eleven bytes", pad(b"\x80" * 10 + b"\1" + record()))
    put("varint-wide", "out-of-range", "JF-12 a number of more than 64 bits", pad(b"\xff" * 9 + b"\2" + record()))
    put("kind-0", "out-of-range", "JF-12 kind 0", group(record(kind=0)))
    put("kind-65536", "out-of-range", "JF-12 kind 65536", group(record(kind=65536)))
    put("kind-4", "out-of-range", "JF-12 a kind of the journal that does not exist", group(record(kind=4)))
    put("kind-not-minimal", "not-minimal", "JF-12 kind 64 in two bytes", group(b"\xc0\0" + record()[1:]))
    put("class-16", "not-zero", "JF-12 an unknown class bit", group(record(klass=16)))
    put("forget-class", "mismatch", "JF-12 a forget record without its class", group(record(kind=1, body=b"\1" + A)))
    put("forget-class-elsewhere", "mismatch", "JF-12 class forgets on another kind", group(record(klass=4, body=b"\1" + A)))
    put("forget-body", "short", "JF-12 a forget record that counts an id too many", group(record(kind=1, klass=4, body=b"\2" + A)))
    put("restored-body", "out-of-range", "JF-12 a restored record with fenced 2", group(record(kind=2, body=restored[:72] + b"\2" + bytes(7))))
    put("unfenced-body", "trailing", "JF-12 an unfenced record with a body", group(record(kind=3)))
    put("stream-unnamed", "out-of-range", "JF-12 a reference before any stream", group(record(stream=b"\2")))
    put("stream-ahead", "out-of-range", "JF-12 a reference to the next stream", group(record(stream=b"\1" + A), record(stream=b"\3")), records=2)
    put("stream-again", "not-minimal", "JF-12 a stream named twice as new", group(record(stream=b"\1" + A), record(stream=b"\1" + A)), records=2)
    put("time-before", "out-of-range", "JF-12 a time below 0", group(record(time=-6), base=5))
    put("time-late", "out-of-range", "JF-12 a time past 2^63 - 1", group(record(time=1), base=2**63 - 1))
    put("body-past-end", "short", "JF-11 a body longer than the rest", group(record(length=varint(200))))
    put("body-too-long", "too-long", "JF-11 a body past 2 MiB, refused before the rest is looked at", group(record(length=varint((2 << 20) + 1))))
    put("body-huge", "too-long", "JF-11 a body of 2^64 - 1 bytes", group(record(length=varint(2**64 - 1))))


# --- compacted bodies (section 5.3) ----------------------------------------------------------------------------------


def sources_body(sources, runs):
    data = varint(len(sources)) + b"".join(end + LINEAGE for end in sources) + varint(len(runs))
    return pad(data + b"".join(varint(first) + varint(last) for first, last in runs))


def compacted():
    def put(name, expect, comment, data, **extra):
        vector(f"sources-{name}", expect, "sources", comment, data, **extra)

    two = [end_record(segment=3), end_record(segment=4, how=2)]
    put("good", "ok", "JF-14 two sources and three runs", sources_body(two, [(1, 1), (3, 3), (5, 900)]), fields="sources=3,4 runs=1-1,3-3,5-900")
    put("no-runs", "ok", "JF-14 nothing dropped", sources_body(two, []), fields="sources=3,4 runs=-")
    put("none", "out-of-range", "JF-14 no source", sources_body([], [(1, 1)]))
    put("order", "out-of-range", "JF-14 sources out of order", sources_body(two[::-1], []))
    put("run-turned", "out-of-range", "JF-14 a run that ends before it begins", sources_body(two, [(5, 4)]))
    put("runs-touch", "out-of-range", "JF-14 two runs that are one", sources_body(two, [(1, 4), (5, 9)]))
    put("count", "short", "JF-14 more sources than the bytes can hold", change(sources_body(two, []), 0, 9))
    put("trailing", "trailing", "JF-14 64 zeros too many", sources_body(two, []) + bytes(64))

    def folded(name, expect, comment, data, **extra):
        vector(f"folded-{name}", expect, "folded", comment, data, **extra)

    def stream(stream_id, first, last, data):
        return stream_id + varint(first) + varint(last) + varint(len(data)) + data

    good = pad(varint(2) + stream(A, 5, 300, b"columns") + stream(B, 6, 6, b""))
    folded("good", "ok", "JF-14 two streams", good, fields=f"streams={A.hex()}:5-300:{b'columns'.hex()},{B.hex()}:6-6:")
    folded("none", "out-of-range", "JF-14 no stream", pad(varint(0)))
    folded("twice", "not-minimal", "JF-14 a stream twice", pad(varint(2) + stream(A, 5, 6, b"x") + stream(A, 7, 8, b"y")))
    folded("sequences", "out-of-range", "JF-14 largest below smallest", pad(varint(1) + stream(A, 5, 4, b"x")))
    folded("length", "short", "JF-14 a stream longer than the rest", pad(varint(1) + A + b"\5\5" + varint(300) + b"x"))
    folded("count", "short", "JF-14 more streams than the bytes can hold", pad(varint(4) + stream(A, 5, 5, b"x")))


# --- summaries (section 11) ------------------------------------------------------------------------------------------


def summary_header(first=5, last=5, generation=0, end=None, digest=1, length=640, version=1, suite=1, size=256, patch=None):
    head = b"SEALOGIX" + le(2, version) + le(2, size) + le(2, suite) + bytes(2) + STORE_ID + le(8, first) + le(8, last) + le(8, generation)
    head += (end or end_record(segment=5)) + le(4, digest) + le(4, length) + bytes(range(32)) + bytes(range(32, 64)) + bytes(range(64, 80))
    head += bytes(44)
    if patch:
        head = change(head, *patch)
    return head + crc(head)


def piece(behind=0, stream=A, first=0, span=4, records=5, event=4, flags=1, epoch=2, time=10, logical=900, stored=700, offsets=(5, 3), digest=b"digest"):
    numbers = varint(first) + varint(span) + varint(records) + varint(event) + bytes([flags]) + varint(epoch) + zigzag(time) + varint(logical)
    numbers += varint(stored) + varint(len(offsets)) + b"".join(varint(step) for step in offsets)
    return varint(behind) + stream + numbers + varint(len(digest)) + digest


def own(sequence=20, kind=1, epoch=2, time=-3, body=None):
    body = varint(1) + A if body is None else body
    return varint(sequence) + varint(kind) + varint(epoch) + zigzag(time) + varint(len(body)) + body


def summary_body(owns=(), marks=(), pieces=(), smallest=100, base=BASE):
    out = varint(smallest) + varint(base) + varint(len(owns)) + b"".join(owns) + varint(len(marks))
    out += b"".join(varint(sequence) + varint(step) for sequence, step in marks)
    return pad(out + varint(len(pieces)) + b"".join(pieces))


def summaries():
    def header(name, expect, comment, data, **extra):
        vector(f"summary-header-{name}", expect, "summary-header", comment, data, **extra)

    header("log", "ok", "JF-20 of a log segment", summary_header(), fields="first=5 last=5 generation=0 digest_version=1 body_length=640 end=5")
    header("compacted", "ok", "JF-20 of a compacted segment", summary_header(3, 9, 2, end_record(segment=3)), fields="first=3 last=9 generation=2 end=3")
    header("short", "short", "JF-20 a byte less", summary_header()[:-1])
    header("crc", "crc", "JF-20 a flipped bit", change(summary_header(), 130, b"\xff"))
    header("magic", "magic", "JF-20 another magic", summary_header(patch=(7, b"Y")))
    header("newer", "newer", "JF-20 a newer version", summary_header(version=2))
    header("suite", "unsupported", "JF-20 another suite", summary_header(suite=2))
    header("zeros-14", "not-zero", "JF-20 bytes that must be zero", summary_header(patch=(14, b"\1")))
    header("zeros-251", "not-zero", "JF-20 bytes that must be zero", summary_header(patch=(251, b"\1")))
    header("length", "out-of-range", "JF-20 another header length", summary_header(size=512))
    header("range", "out-of-range", "JF-20 a range that is turned", summary_header(9, 3, 2))
    header("generation", "mismatch", "JF-20 a range of generation 0", summary_header(3, 9, 0))
    header("no-end", "out-of-range", "JF-20 no end", summary_header(end=bytes(64)))
    header("body-odd", "out-of-range", "JF-20 a body that is not a multiple of 64", summary_header(length=65))
    header("body-none", "out-of-range", "JF-20 no body", summary_header(length=0))
    header("body-long", "too-long", "JF-20 a body above the limit", summary_header(length=(16 << 20) + 64))

    def body(name, expect, comment, data, **extra):
        vector(f"summary-body-{name}", expect, "summary-body", comment, data, **extra)

    good = summary_body([own()], [(0, 5), (7, 2048)], [piece(), piece(1, B, 30, 0, 1, 0, 0, digest=b"")])
    shown = f"pieces=0:{A.hex()}:100-104:8352,8448:{b'digest'.hex()},1:{B.hex()}:130-130:8352,8448:"
    body("good", "ok", "JF-22 one of each", good, fields=f"own=120:1 marks=100:8352,107:73888 {shown}")
    body("empty", "ok", "JF-22 nothing", summary_body(), fields="own=- marks=- pieces=-")
    body("unaligned", "out-of-range", "JF-22 not a multiple of 64", good[:-1])
    body("trailing", "trailing", "JF-22 more zeros than the padding", good + bytes(64))
    body("padding", "not-zero", "JF-22 padding that is not zero", change(good, len(good) - 1, b"\1"))
    body("smallest", "out-of-range", "JF-22 sequence 0", summary_body(smallest=0))
    body("own-kind", "out-of-range", "JF-22 an own record of another kind", summary_body([own(kind=64)]))
    body("own-body", "short", "JF-22 a forget record that names more than it holds", summary_body([own(body=varint(2) + A)]))
    body("own-order", "out-of-range", "JF-22 own records that do not ascend", summary_body([own(), own()]))
    body("own-count", "short", "JF-22 more own records than the bytes can hold", pad(varint(100) + varint(BASE) + varint(300)))
    body("marks-order", "out-of-range", "JF-22 a mark twice", summary_body(marks=[(0, 5), (7, 0)]))
    body("place", "out-of-range", "JF-22 a piece behind more own records than there are", summary_body([own()], pieces=[piece(2)]))
    body("records", "out-of-range", "JF-22 more records than sequences", summary_body(pieces=[piece(records=6)]))
    body("flags", "not-zero", "JF-22 an unknown bit", summary_body(pieces=[piece(flags=2)]))
    body("no-frame", "out-of-range", "JF-22 a piece in no frame", summary_body(pieces=[piece(offsets=())]))
    body("frame-twice", "out-of-range", "JF-22 a frame twice", summary_body(pieces=[piece(offsets=(5, 0))]))
    body("digest", "too-long", "JF-22 a digest above the limit", summary_body(pieces=[piece(digest=bytes(1025))]))
    body("time", "out-of-range", "JF-22 a time before the epoch", summary_body(pieces=[piece(time=-BASE - 1)]))
    body("pieces", "short", "JF-22 more pieces than the bytes can hold", pad(varint(100) + varint(BASE) + varint(0) + varint(0) + varint(3) + piece()))


# --- names (section 2) -----------------------------------------------------------------------------------------------


def names():
    def put(name, expect, comment, text, **extra):
        vector(f"name-{name}", expect, "name", comment, text.encode(), **extra)

    put("log", "ok", "section 2: twelve digits", "000000000042.seg", fields="first=42 last=42 generation=0")
    put("long", "ok", "section 2: more digits when needed", "1000000000000.seg", fields="first=1000000000000 last=1000000000000 generation=0")
    put("compacted", "ok", "section 2: range and generation", "000000000003-000000000012.000000000002.seg", fields="first=3 last=12 generation=2")
    put("unpadded", "name", "section 2: fewer than twelve digits", "42.seg")
    put("overpadded", "name", "section 2: a thirteenth digit that is zero", "0000000000042.seg")
    put("number-0", "name", "section 2: segment 0 does not exist", "000000000000.seg")
    put("overflow", "name", "section 2: past 64 bits", "18446744073709551616.seg")
    put("range-turned", "name", "section 2: last below first", "000000000012-000000000003.000000000001.seg")
    put("no-generation", "name", "section 2: a range without a generation", "000000000003-000000000012.seg")
    put("other", "name", "section 2: the prepared segment is not published", "next")


# --- manifest of a backup (backup.md, section 2) ----------------------------------------------------------------------

KEYRING = bytes(range(200))


def backup_file(first, last, generation=0, length=8192 + 160, kind=1, zeros=bytes(15)):
    return le(8, first) + le(8, last) + le(8, generation) + le(8, length) + CHAIN + MAC + le(1, kind) + zeros


def manifest(files=None, version=1, keyring_length=None, count=None, keyring=KEYRING, segment=5, patch=None, mac=MAC):
    if files is None:
        files = [backup_file(1, 3, generation=2), backup_file(4, 4), backup_file(5, 5, kind=2)]
    data = b"SEALOGBK" + le(2, version) + bytes(2)
    data += le(4, len(keyring) if keyring_length is None else keyring_length)
    data += le(4, len(files) if count is None else count) + bytes(4) + STORE
    for counter in (1, 2):
        empty = {"frames": 0, "last": 0, "chain": bytes(16)} if segment == 0 else {}
        data += head_slot(counter=counter, segment=segment, **empty)[:512]
    data += le(8, 1767225600123) + KEY_ID + keyring + b"".join(files)
    if patch:
        data = change(data, *patch)
    data += mac
    return data + crc(data)


def manifests():
    def put(name, expect, comment, data, **extra):
        vector(f"manifest-{name}", expect, "manifest", comment, data, **extra)

    ids = f"key_id={KEY_ID.hex()} taken_ms=1767225600123 mac={MAC.hex()}"
    names = f"000000000001-000000000003.000000000002.{CHAIN.hex()}.seg,000000000004.{CHAIN.hex()}.seg"
    names += f",000000000005.{CHAIN.hex()}.tail"
    put("good", "ok", "JB-2 three files, the last one a tail", manifest(), fields=f"{ids} keyring=200 files={names}")
    put("empty", "ok", "JB-2 a journal without a segment", manifest(files=[], segment=0), fields="files=-")
    put("magic", "magic", "JB-2 magic of a store", b"SEALOGST" + manifest()[8:])
    put("newer", "newer", "JB-2 version 2", manifest(version=2))
    put("short", "short", "JB-2 cut by a byte", manifest()[:-1])
    put("trailing", "trailing", "JB-2 a byte more", manifest() + b"\0")
    put("count", "short", "JB-2 more files counted than there are", manifest(count=4))
    put("count-huge", "too-long", "JB-2 more files than one manifest lists", manifest(count=2**32 - 1))
    put("keyring-huge", "too-long", "JB-2 a keyring over its limit", manifest(keyring_length=65537))
    put("crc", "crc", "JB-2 one bit of the MAC", change(manifest(), len(manifest()) - 10, manifest()[-10] ^ 1))
    put("not-zero", "not-zero", "JB-2 a byte of the reserved part", manifest(patch=(20, 1)))
    put("file-not-zero", "not-zero", "JB-2 a byte behind a file's kind", manifest(files=[backup_file(1, 1, zeros=b"\1" + bytes(14))], segment=1))
    put("file-kind", "out-of-range", "JB-2 kind 3", manifest(files=[backup_file(1, 1, kind=3)], segment=1))
    put("file-length", "out-of-range", "JB-2 no room for a frame", manifest(files=[backup_file(1, 1, length=8192)], segment=1))
    put("file-hole", "mismatch", "JB-2 a segment is missing", manifest(files=[backup_file(1, 1), backup_file(3, 3)], segment=3))
    put("file-tail", "mismatch", "JB-2 a tail that is not last", manifest(files=[backup_file(1, 1, kind=2), backup_file(2, 2)], segment=2))
    put("head", "mismatch", "JB-2 the head names another segment", manifest(segment=6))


for part in (stores, heads, ends, segments, frames, groups, compacted, summaries, names, manifests):
    part()
stale = {path.stem for path in HERE.glob("*.txt")} - written
assert not stale, f"vectors that nothing writes any more: {stale}"
print(f"{len(written)} vectors")
