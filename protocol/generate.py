#!/usr/bin/env python3
"""Makes C++ of the message definitions in schemas/ (their format is explained at the top of each file).

    generate.py --out DIR            writes DIR/protocol/messages/<name>.h, one per message, the codecs and the tables
    generate.py --out DIR --list     prints the files that this would write, headers and sources
    generate.py --all-messages FILE  writes the source behind tests/support/protocol/all_messages.h

What the C++ looks like is described in reader.h. Nothing but the schemas goes in, so the output is the same everywhere;
files that would not change are left alone.
"""

import argparse
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SCHEMAS = ["messages", "data", "metadata", "coordinator"]
SOURCES = 12  # the codecs are spread over so many files of about the same size
NEVER_FLEXIBLE = 32767
RESERVED = {"r", "w", "v", "n", "tag", "next", "begun", "compact", "read", "write", "unknown_tags"}  # used by the codecs
KEYWORDS = {"default", "operator", "namespace", "new", "delete", "class", "register", "private", "public", "union", "export", "this"}

NUMBERS = {  # schema type: C++ type, bytes on the wire, name in Reader and Writer
    "bool": ("bool", 1, "boolean"),
    "int8": ("std::int8_t", 1, "int8"),
    "int16": ("std::int16_t", 2, "int16"),
    "uint16": ("std::uint16_t", 2, "uint16"),
    "int32": ("std::int32_t", 4, "int32"),
    "uint32": ("std::uint32_t", 4, "uint32"),
    "int64": ("std::int64_t", 8, "int64"),
    "float64": ("double", 8, "float64"),
}
VARIABLE = {"string": "std::string", "bytes": "std::vector<std::byte>", "records": "Records"}  # one byte at least, when compact


class Versions:
    """A range of versions, both ends included; empty when `first` is above `last`."""

    def __init__(self, first, last):
        self.first, self.last = first, last

    @staticmethod
    def parse(text, newest=None):
        if text == "none":
            return Versions(0, -1)
        if text.endswith("+"):
            return Versions(int(text[:-1]), NEVER_FLEXIBLE if newest is None else newest)
        first, _, last = text.partition("-")
        return Versions(int(first), int(last or first))

    def __and__(self, other):
        return Versions(max(self.first, other.first), min(self.last, other.last))

    def __bool__(self):
        return self.first <= self.last

    def __eq__(self, other):
        return (not self and not other) or (self.first, self.last) == (other.first, other.last)

    def covers(self, other):
        return (self & other) == other

    def test(self, within):
        """A C++ condition on the version `v`, known to lie in `within`; None if it always holds, "false" if never."""
        both = self & within
        if not both:
            return "false"
        if both == within:
            return None
        parts = []
        if both.first == both.last:
            return f"v == {both.first}"
        if both.first > within.first:
            parts.append(f"v >= {both.first}")
        if both.last < within.last:
            parts.append(f"v <= {both.last}")
        return " && ".join(parts)


def snake(name):
    name = name.replace("KRaft", "Kraft").replace("2Pc", "_2pc")
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    name = re.sub(r"(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    name = name.lower()
    return name + "_" if name in KEYWORDS else name


class Field:
    def __init__(self, words, message):
        self.schema_name, self.type, versions = words[:3]
        self.name = snake(self.schema_name)
        self.versions = Versions.parse(versions) & message.versions
        self.null = Versions(0, -1)
        self.tag, self.tagged = None, Versions(0, -1)
        self.default, self.ignorable, self.inflexible = None, False, False
        for word in words[3:]:
            option, _, value = word.partition("=")
            if option == "null":
                self.null = Versions.parse(value) & message.versions
            elif option == "tag":
                tag, _, where = value.partition(":")
                self.tag, self.tagged = int(tag), Versions.parse(where) & message.versions
            elif option == "default":
                self.default = value
            elif option == "ignorable":
                self.ignorable = True
            elif option == "inflexible":
                self.inflexible = True
            elif option != "key":
                raise ValueError(f"{message.name}.{self.schema_name}: {word}")
        self.fields = []  # of the structure that is defined here
        self.optional = bool(self.null) or self.default == "null"
        self.is_array = self.type.startswith("[]")
        self.base = self.type[2:] if self.is_array else self.type
        self.is_struct = self.base not in NUMBERS and self.base not in VARIABLE and self.base != "uuid"
        self.is_error = self.type == "int16" and self.schema_name.endswith("ErrorCode")
        if self.tag is not None and self.tagged != self.versions:
            raise ValueError(f"{message.name}.{self.schema_name}: tagged in some of its versions only")

    def element_type(self):
        if self.is_error:
            return "ErrorCode"
        if self.base in NUMBERS:
            return NUMBERS[self.base][0]
        return VARIABLE.get(self.base) or ("Uuid" if self.base == "uuid" else self.base)

    def cpp_type(self):
        kind = self.element_type()
        if self.is_array:
            kind = f"std::vector<{kind}>"
        return f"std::optional<{kind}>" if self.optional else kind

    def initial(self, errors):
        """The C++ default value."""
        if self.optional:
            if self.default == "null":
                return "std::nullopt"
            return f"{self.cpp_type()[len('std::optional<'):-1]}{{}}"
        if self.is_error:
            return f"ErrorCode::{errors[int(self.default or 0)]}"
        if self.is_array or self.is_struct or self.base == "uuid" or self.base in VARIABLE:
            if self.default not in (None, ""):
                raise ValueError(f"default of {self.schema_name}")
            return "{}"
        if self.base == "bool":
            return self.default or "false"
        return {"-2147483648": "-2147483647 - 1"}.get(self.default, self.default or "0")

    def differs_from_default(self):
        """A C++ condition."""
        if self.optional:
            if self.default == "null":
                return f"{self.name}.has_value()"
            if self.is_array or self.base in ("string", "bytes"):
                return f"(!{self.name} || !{self.name}->empty())"
            if self.is_struct:
                return f"(!{self.name} || *{self.name} != {self.base}{{}})"
            return f"(!{self.name} || {self.name}->size() != 0)"
        if self.is_array or self.base in ("string", "bytes"):
            return f"!{self.name}.empty()"
        if self.base == "records":
            return f"{self.name}.size() != 0"
        if self.base == "uuid":
            return f"!{self.name}.is_zero()"
        if self.is_struct:
            return f"{self.name} != {self.base}{{}}"
        if self.base == "bool":
            return f"{'!' if self.default == 'true' else ''}{self.name}"
        return f"{self.name} != {self.initial_for_test}"


class Message:
    def __init__(self, words):
        self.kind, self.name = words[:2]
        options = dict(word.partition("=")[::2] for word in words[2:])
        self.versions = Versions.parse(options["versions"])
        self.flexible = Versions.parse(options["flexible"])
        self.key = int(options["key"]) if "key" in options else None
        self.listeners = options.get("listeners", "").split(",")
        self.unstable = "unstable" in options
        self.fields = []
        self.shared = []  # pairs of name and fields
        self.file = snake(self.name)
        self.structs = {}  # name: fields, each after those that it uses
        self.struct_versions = {}  # name: those that can hold it

    def finish(self, errors):
        """Orders the structures, once all fields have been read."""
        shared = dict(self.shared)

        def visit(fields):
            for field in fields:
                field.initial_for_test = None if field.optional else field.initial(errors)
                if field.is_struct and field.base not in self.structs:
                    inner = field.fields or shared[field.base]
                    visit(inner)
                    self.structs[field.base] = inner
                elif field.fields:
                    raise ValueError(f"{self.name}: {field.base} is defined twice")

        def reach(fields, within):
            for field in fields:
                if field.is_struct:
                    there = field.versions & within
                    known = self.struct_versions.get(field.base, there)
                    self.struct_versions[field.base] = Versions(min(known.first, there.first), max(known.last, there.last))
                    reach(self.structs[field.base], there)

        visit(self.fields)
        reach(self.fields, self.versions)
        for fields in [self.fields, *self.structs.values()]:
            names = [field.name for field in fields]
            if len(set(names)) != len(names) or RESERVED & set(names):
                raise ValueError(f"{self.name}: names of fields: {names}")
        if self.name in self.structs or {"api_key", "record_type", "versions", "flexible_from", "message_name"} & {f.name for f in self.fields}:
            raise ValueError(f"{self.name}: a name is taken")

    def flexible_from(self):
        return self.flexible.first if self.flexible else NEVER_FLEXIBLE


def read_schema(name, errors):
    messages, stack = [], []
    with open(os.path.join(HERE, "schemas", name + ".schema"), encoding="utf-8") as file:
        for line in file:
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            depth = (len(line) - len(line.lstrip(" "))) // 2
            if depth == 0:
                message = Message(words)
                messages.append(message)
                stack = [message.fields]
                continue
            del stack[depth:]
            if words[0] == "struct":
                fields = []
                message.shared.append((words[1], fields))
                stack.append(fields)
            else:
                field = Field(words, message)
                if field.versions:  # others belong to versions that no longer exist
                    stack[depth - 1].append(field)
                stack.append(field.fields)
    for message in messages:
        message.finish(errors)
    return messages


def read_errors():
    """Code: (name, enumerator, retriable)."""
    errors = {}
    with open(os.path.join(HERE, "schemas", "errors.schema"), encoding="utf-8") as file:
        for line in file:
            if not line.startswith("#"):
                words = line.split()
                errors[int(words[0])] = (words[1], words[1].lower(), "retriable" in words[2:])
    return errors


def field_bytes_min(field, version, message):
    """The fewest bytes that the field takes in this version."""
    if field.tag is not None or not field.versions.covers(version):
        return 0
    compact = message.flexible.covers(version) and not field.inflexible
    if field.is_array:
        return 1 if compact else 4
    if field.is_struct:
        return 1 if field.optional else struct_bytes_min(field.base, version, message)
    if field.base in NUMBERS:
        return NUMBERS[field.base][1]
    if field.base == "uuid":
        return 16
    return 1 if compact else 2 if field.base == "string" else 4


def struct_bytes_min(name, version, message):
    tags = 1 if message.flexible.covers(version) else 0
    return sum(field_bytes_min(f, version, message) for f in message.structs[name]) + tags


def element_bytes_min(name, message):
    """The fewest bytes of an element of such an array in any version that can hold one."""
    versions = message.struct_versions[name]
    return min(struct_bytes_min(name, Versions(v, v), message) for v in range(versions.first, versions.last + 1))


def functions_of(name):
    return ["    void read(Reader&, std::int16_t version);", "    void write(Writer&, std::int16_t version) const;",
            f"    friend bool operator==(const {name}&, const {name}&) = default;"]


def declared_fields(fields, within, errors):
    """Members, with the versions that carry them where these are not all."""
    lines = []
    for field in fields:
        notes = []
        v = field.versions & within
        if v != within:
            notes.append(f"{v.first}+" if v.last == within.last else str(v.first) if v.first == v.last else f"{v.first}-{v.last}")
        if field.tag is not None:
            notes.append(f"tag {field.tag}")
        if field.null and not field.null.covers(v):
            notes.append(f"null {field.null.first}-{field.null.last}" if field.null.last < v.last else f"null {field.null.first}+")
        if field.ignorable and v != within:
            notes.append("ignorable")
        note = f"  // {', '.join(notes)}" if notes else ""
        lines.append(f"    {field.cpp_type()} {field.name} = {field.initial(errors)};{note}")
    lines.append(f"    UnknownTags unknown_tags = {{}};")
    return lines


def header_of(message, errors):
    all_fields = [f for fields in [message.fields, *message.structs.values()] for f in fields]
    includes = set()
    if any(f.is_error for f in all_fields):
        includes.add('"protocol/error_code.h"')
    if any(f.base == "uuid" for f in all_fields):
        includes.add('"base/uuid.h"')
    if message.kind in ("request", "response"):
        includes.add('"protocol/api_key.h"')
    includes.add('"protocol/wire_types.h"')
    out = ["// Generated from protocol/schemas.", "#pragma once", "", "#include <string>", ""]
    out += [f"#include {i}" for i in sorted(includes)]
    out += ["", "namespace tidemark::protocol {", "class Reader;", "class Writer;", ""]
    if message.structs:
        # Not inside the message: there their defaults would not count yet where an optional member asks for them.
        out += [f"namespace {message.file} {{", ""]
        for name, fields in message.structs.items():
            out.append(f"struct {name} {{")
            out += declared_fields(fields, message.struct_versions[name], errors)
            out += ["", f"    static constexpr std::size_t encoded_bytes_min = {element_bytes_min(name, message)};", *functions_of(name), "};", ""]
        out += [f"}}  // namespace {message.file}", ""]
    out.append(f"struct {message.name} {{")
    if message.kind in ("request", "response"):
        out.append(f"    static constexpr ApiKey api_key = ApiKey::{api_name(message)};")
    elif message.key is not None:
        out.append(f"    static constexpr std::int16_t record_type = {message.key};")
    out += [
        f"    static constexpr VersionRange versions{{{message.versions.first}, {message.versions.last}}};",
        f"    static constexpr std::int16_t flexible_from = {message.flexible_from() if message.flexible else 'never_flexible'};",
        f'    static constexpr const char* message_name = "{message.name}";',
        *(f"    using {name} = {message.file}::{name};" for name in message.structs),
        "",
    ]
    out += declared_fields(message.fields, message.versions, errors)
    out += ["", *functions_of(message.name), "};", "", "}  // namespace tidemark::protocol"]
    return "\n".join(out) + "\n"


def compact_of(field):
    return "false" if field.inflexible else "compact"


def may_be_null(field, within):
    test = field.null.test(within & field.versions)
    return "true" if test is None else test


def read_value(field, within, tagged):
    """Statements that read the field, which is there."""
    name, compact = field.name, compact_of(field)
    if field.is_array:
        if field.optional:
            return [f"r.nullable_array({name}, {compact}, v, {may_be_null(field, within)});"]
        return [f"r.array({name}, {compact}, v);"]
    if field.is_struct:
        if not field.optional:
            again = [f"{name} = {{}};"] if tagged else []  # the tag could come twice
            return [*again, f"{name}.read(r, v);"]
        follows = "tagged_structure_follows" if tagged else "structure_follows"
        if not field.null.covers(within & field.versions):
            raise ValueError(f"{name}: a structure that is nullable in some versions only")
        return [f"if (r.{follows}()) {name}.emplace().read(r, v);", f"else {name}.reset();"]
    if field.is_error:
        return [f"{name} = static_cast<ErrorCode>(r.int16());"]
    if field.base in NUMBERS:
        return [f"{name} = r.{NUMBERS[field.base][2]}();"]
    if field.base == "uuid":
        return [f"{name} = r.uuid();"]
    if field.optional:
        return [f"{name} = r.nullable_{field.base}({compact}, {may_be_null(field, within)});"]
    return [f"{name} = r.{field.base}({compact});"]


def write_value(field, within, tagged):
    name, compact = field.name, compact_of(field)
    if field.is_array:
        if field.optional:
            return [f"w.nullable_array({name}, {compact}, v, {may_be_null(field, within)});"]
        return [f"w.array({name}, {compact}, v);"]
    if field.is_struct:
        if not field.optional:
            return [f"{name}.write(w, v);"]
        follows = "tagged_structure_follows" if tagged else "structure_follows"
        return [f"w.{follows}({name}.has_value());", f"if ({name}) {name}->write(w, v);"]
    if field.is_error:
        return [f"w.int16(static_cast<std::int16_t>({name}));"]
    if field.base in NUMBERS:
        return [f"w.{NUMBERS[field.base][2]}({name});"]
    if field.base == "uuid":
        return [f"w.uuid({name});"]
    if field.optional:
        return [f"w.nullable_{field.base}({name}, {compact}, {may_be_null(field, within)});"]
    return [f"w.{field.base}({name}, {compact});"]


def negated(condition):
    lower = re.fullmatch(r"v >= (\d+)", condition)
    return f"v < {lower[1]}" if lower else f"!({condition})"


def block(condition, statements, otherwise=()):
    """Statements under a condition, None being always."""
    if condition is None:
        return list(statements)
    if len(statements) == 1 and not otherwise and not statements[0].startswith("if"):
        return [f"if ({condition}) {statements[0]}"]
    out = [f"if ({condition}) {{", *("    " + s for s in statements)]
    if len(otherwise) == 1 and otherwise[0].startswith("if"):
        test, _, statement = otherwise[0].partition(") w.")
        out += [f"}} else {test}) {{", f"    w.{statement}"]
    elif otherwise:
        raise ValueError(otherwise)
    return [*out, "}"]


def read_function(scope, fields, message, within):
    body = []
    for field in fields:
        if field.tag is None:
            body += block(field.versions.test(within), read_value(field, within, False))
    tagged = [f for f in fields if f.tag is not None]
    if message.flexible:
        if not tagged:
            tags = ["r.unknown_tags(unknown_tags);"]
        else:
            tags = ["for (auto n = r.tag_count(); n > 0 && r.ok(); --n) {", "    const auto tag = r.begin_tag();"]
            for i, field in enumerate(tagged):
                test = field.versions.test(message.flexible & within)
                condition = f"tag.number == {field.tag}" + (f" && {test}" if test else "")
                tags.append(f"    {'} else ' if i else ''}if ({condition}) {{")
                tags += ["        " + s for s in read_value(field, within, True)]
            tags += ["    } else {", "        r.unknown_tag(tag, unknown_tags);", "    }", "    r.end_tag(tag);", "}"]
        if message.flexible & within:
            body += block(message.flexible.test(within), tags)
    return function(f"void {scope}::read([[maybe_unused]] Reader& r, [[maybe_unused]] std::int16_t v)", body, message, within)


def write_function(scope, fields, message, within, top=False):
    body = []
    if top:
        body.append(f"if (!versions.contains(v)) return w.refuse_version(message_name, v);")
    for field in fields:
        test = field.versions.test(within)
        absent = []
        if test is not None and not field.ignorable:
            absent = [f'if ({field.differs_from_default()}) w.refuse_field("{scope}.{field.name}", v);']
        if field.tag is None:
            body += block(test, write_value(field, within, False), absent)
        elif absent:
            body += [absent[0].replace("if (", f"if ({negated(test)} && ", 1)]
    tagged = sorted((f for f in fields if f.tag is not None and f.versions), key=lambda f: f.tag)
    if message.flexible:
        if not tagged:
            tags = ["w.unknown_tags(unknown_tags);"]
        else:
            tags, count = [], []
            for field in tagged:
                test = field.versions.test(message.flexible & within)
                tags.append(f"const bool has_{field.name} = {test + ' && ' if test else ''}{field.differs_from_default()};")
                count.append(f"has_{field.name}")
            tags.append(f"w.tag_count(unknown_tags.size() + {' + '.join(count)});")
            tags.append("std::size_t next = 0;")
            for field in tagged:
                tags += [f"w.unknown_tags_below({field.tag}, unknown_tags, &next);", f"if (has_{field.name}) {{",
                         f"    const auto begun = w.begin_tag({field.tag});",
                         *("    " + s for s in write_value(field, within, True)), "    w.end_tag(begun);", "}"]
            tags.append("w.unknown_tags_rest(unknown_tags, &next);")
    else:
        tags = []
    refuse = f'if (!unknown_tags.empty()) w.refuse_field("{scope}.unknown_tags", v);'
    if message.flexible & within:
        body += block(message.flexible.test(within), tags, [refuse])
    else:
        body.append(refuse)
    return function(f"void {scope}::write([[maybe_unused]] Writer& w, [[maybe_unused]] std::int16_t v) const", body, message, within)


def function(signature, body, message, within):
    if any("compact" in line for line in body):
        test = message.flexible.test(within)
        body = [f"const bool compact = {'true' if test is None else test};", *body]
    return [signature + " {", *("    " + line for line in body), "}", ""]


def source_of(messages):
    out = ["// Generated from protocol/schemas."]
    out += [f'#include "protocol/messages/{m.file}.h"' for m in messages]
    out += ['#include "protocol/reader.h"', '#include "protocol/writer.h"', "", "namespace tidemark::protocol {", ""]
    for message in messages:
        for name, fields in message.structs.items():
            scope = f"{message.file}::{name}"
            versions = message.struct_versions[name]
            out += read_function(scope, fields, message, versions) + write_function(scope, fields, message, versions)
        out += read_function(message.name, message.fields, message, message.versions)
        out += write_function(message.name, message.fields, message, message.versions, top=True)
    out.append("}  // namespace tidemark::protocol")
    return "\n".join(out) + "\n"


def spread(messages):
    """SOURCES lists of about the same size; a request stays with its response."""
    total = sum(size_of(m) for m in messages)
    lists, filled = [[] for _ in range(SOURCES)], 0
    for message in messages:
        lists[min(filled * SOURCES // total, SOURCES - 1)].append(message)
        filled += size_of(message)
    return lists


def size_of(message):
    return 4 + sum(1 + len(fields) for fields in [message.fields, *message.structs.values()])


def api_name(message):
    return snake(message.name.removesuffix("Request").removesuffix("Response"))


def api_key_header(requests):
    out = ["// Generated from protocol/schemas.", "#pragma once", "", "#include <cstdint>", "", "namespace tidemark::protocol {", "",
           "/// What a request asks for: the first number in its header. Numbers without a name here are no API of a broker.",
           "enum class ApiKey : std::int16_t {"]
    out += [f"    {api_name(m)} = {m.key}," for m in requests]
    out += ["};", "", "}  // namespace tidemark::protocol"]
    return "\n".join(out) + "\n"


def api_table(requests, responses):
    """What api.h's apis() returns."""
    out = ["// Generated from protocol/schemas.", '#include "protocol/api.h"', "", "namespace tidemark::protocol {", "", "const Api api_table[] = {"]
    for m, response in zip(requests, responses, strict=True):
        newest = m.versions.last - (1 if m.unstable else 0)
        assert m.key == response.key and m.flexible == response.flexible and m.versions == response.versions, m.name
        out.append(f'    {{ApiKey::{api_name(m)}, "{m.name.removesuffix("Request")}", {{{m.versions.first}, {newest}}}, {m.flexible_from()}, '
                   f'{"true" if m.unstable else "false"}, {"true" if "broker" in m.listeners else "false"}, '
                   f'{"true" if "controller" in m.listeners else "false"}}},')
    out += ["};", f"const std::size_t api_table_size = {len(requests)};", "", "}  // namespace tidemark::protocol"]
    return "\n".join(out) + "\n"


def error_code_header(errors):
    out = ["// Generated from protocol/schemas.", "#pragma once", "", "#include <cstdint>", "#include <string_view>", "", "namespace tidemark::protocol {", "",
           "/// How a response says what went wrong. A number without a name here can come from the wire and is kept.",
           "enum class ErrorCode : std::int16_t {"]
    out += [f"    {enumerator} = {code},{'  // retriable' if retriable else ''}" for code, (_, enumerator, retriable) in errors.items()]
    out += ["};", "", '/// Kafka\'s name, for example "OFFSET_OUT_OF_RANGE"; "UNKNOWN" for a number without one.',
            "std::string_view to_string(ErrorCode);", "/// May a client repeat the request?", "bool is_retriable(ErrorCode);", "",
            "}  // namespace tidemark::protocol"]
    return "\n".join(out) + "\n"


def error_code_source(errors):
    out = ["// Generated from protocol/schemas.", '#include "protocol/error_code.h"', "", "namespace tidemark::protocol {", "",
           "std::string_view to_string(ErrorCode code) {", "    switch (code) {"]
    out += [f'        case ErrorCode::{enumerator}: return "{name}";' for name, enumerator, _ in errors.values()]
    out += ["    }", '    return "UNKNOWN";', "}", "", "bool is_retriable(ErrorCode code) {", "    switch (code) {"]
    out += [f"        case ErrorCode::{enumerator}:" for _, enumerator, retriable in errors.values() if retriable]
    out += ["            return true;", "        default:", "            return false;", "    }", "}", "", "}  // namespace tidemark::protocol"]
    return "\n".join(out) + "\n"


def metadata_records(records):
    names = ",\n    ".join(m.name for m in records)
    out = ["// Generated from protocol/schemas.", "#pragma once", "", "#include <variant>", ""]
    out += [f'#include "protocol/messages/{m.file}.h"' for m in records]
    out += ["", "namespace tidemark::protocol {", "", "/// Any record of the metadata log.",
            f"using MetadataRecord = std::variant<\n    {names}>;", "", "}  // namespace tidemark::protocol"]
    return "\n".join(out) + "\n"


def metadata_reader(records):
    out = ["// Generated from protocol/schemas.", '#include "protocol/metadata_record.h"', '#include "protocol/reader.h"', "", "namespace tidemark::protocol {", "",
           "Result<MetadataRecord> parse_metadata_record(Reader& reader, std::uint32_t type, std::int16_t version) {", "    switch (type) {"]
    for m in records:
        out += [f"        case {m.name}::record_type: {{", f"            TM_TRY(auto record, parse<{m.name}>(reader, version));",
                "            return MetadataRecord(std::move(record));", "        }"]
    out += ["    }", '    return Error{Errc::unsupported, "no metadata record has type " + std::to_string(type)};', "}", "", "}  // namespace tidemark::protocol"]
    return "\n".join(out) + "\n"


def all_messages(messages):
    """A table of every message, for tests and fuzzing."""
    out = ["// Generated from protocol/schemas.", '#include "tests/support/protocol/all_messages_impl.h"']
    out += [f'#include "protocol/messages/{m.file}.h"' for m in messages]
    out += ["", "namespace tidemark::protocol {", "", "const AnyMessage all_messages_table[] = {"]
    out += [f"    any_message<{m.name}>()," for m in messages]
    out += ["};", f"const std::size_t all_messages_table_size = {len(messages)};", "", "}  // namespace tidemark::protocol"]
    return "\n".join(out) + "\n"


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    try:
        with open(path, encoding="utf-8") as file:
            if file.read() == text:
                return
    except FileNotFoundError:
        pass
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--out")
    options.add_argument("--list", action="store_true")
    options.add_argument("--all-messages")
    options = options.parse_args()

    errors = read_errors()
    enumerators = {code: error[1] for code, error in errors.items()}
    schemas = {name: read_schema(name, enumerators) for name in SCHEMAS}
    messages = [m for name in SCHEMAS for m in schemas[name]]
    if options.all_messages:
        write(options.all_messages, all_messages(messages))
        return
    requests = [m for m in schemas["messages"] if m.kind == "request"]
    responses = [m for m in schemas["messages"] if m.kind == "response"]

    files = {f"messages/{m.file}.h": header_of(m, enumerators) for m in messages}
    assert len(files) == len(messages)
    for i, part in enumerate(spread(messages)):
        files[f"codecs_{i + 1}.cpp"] = source_of(part)
    files["api_key.h"] = api_key_header(requests)
    files["api_table.cpp"] = api_table(requests, responses)
    files["error_code.h"] = error_code_header(errors)
    files["error_code.cpp"] = error_code_source(errors)
    files["metadata_records.h"] = metadata_records(schemas["metadata"])
    files["metadata_reader.cpp"] = metadata_reader(schemas["metadata"])

    if options.list:
        print(";".join(os.path.join(options.out, "protocol", name) for name in files), end="")
        return
    for name, text in files.items():
        write(os.path.join(options.out, "protocol", name), text)


if __name__ == "__main__":
    sys.exit(main())
