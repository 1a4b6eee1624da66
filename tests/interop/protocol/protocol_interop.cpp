/// Our side of the comparison with Kafka's message classes; run.py has the other. In a file, entries follow each other:
/// name (int16 length), int16 version, bytes (int32 length).
///
///   protocol_interop generate SEED COUNT OUT   COUNT random messages for each message and version
///   protocol_interop rewrite IN OUT            reads every message of IN and writes it again
///   protocol_interop tables                    prints the APIs and error codes
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>

#include "protocol/error_code.h"
#include "protocol/framing.h"
#include "protocol/reader.h"
#include "protocol/writer.h"
#include "tests/support/protocol/all_messages.h"
#include "tests/support/protocol/random_message.h"

namespace {

using namespace tidemark;

[[noreturn]] void give_up(const std::string& why) {
    std::cerr << "protocol_interop: " << why << "\n";
    std::exit(1);
}

void put_entry(protocol::Writer& to, const std::string& name, std::int16_t version, Bytes bytes) {
    to.string(name, false);
    to.int16(version);
    to.bytes(bytes, false);
}

void save(const std::string& path, protocol::Writer&& writer) {
    const auto bytes = std::move(writer).finish_bytes();
    if (!bytes) give_up(bytes.error().message());
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes->data()), static_cast<std::streamsize>(bytes->size()));
    if (!file.flush()) give_up("cannot write " + path);
}

/// The message, read and written.
std::vector<std::byte> rewritten(const std::string& name, std::int16_t version, std::vector<std::byte> bytes) {
    const auto where = name + " version " + std::to_string(version) + ": ";
    const auto* any = protocol::find_message(name);
    if (!any) give_up(where + "unknown");
    auto result = any->round_trip(bytes, version);
    if (!result) give_up(where + result.error().message());
    if (result->consumed != bytes.size()) give_up(where + "bytes left");
    if (!result->written) give_up(where + result->written.error().message());
    return *std::move(result->written);
}

void generate(std::uint64_t seed, int count, const std::string& out) {
    protocol::Random random{seed};
    protocol::Writer writer;
    for (const auto& message : protocol::schema::read("protocol/schemas")) {
        for (auto version = message.versions.min; version <= message.versions.max; ++version) {
            for (int i = 0; i < count; ++i) {
                put_entry(writer, message.name, version, rewritten(message.name, version, protocol::random_message(message, version, random).bytes));
            }
        }
    }
    save(out, std::move(writer));
}

void rewrite(const std::string& in, const std::string& out) {
    std::ifstream file(in, std::ios::binary);
    if (!file) give_up("cannot read " + in);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    protocol::Reader reader{as_bytes(text)};
    protocol::Writer writer;
    while (reader.ok() && reader.remaining() > 0) {
        const auto name = reader.string(false);
        const auto version = reader.int16();
        auto bytes = reader.bytes(false);
        if (reader.ok()) put_entry(writer, name, version, rewritten(name, version, std::move(bytes)));
    }
    if (!reader.ok()) give_up(reader.result().error().message());
    save(out, std::move(writer));
}

void tables() {
    for (const auto& api : protocol::apis()) {
        std::cout << "api " << static_cast<int>(api.key) << " " << api.name << " " << api.versions.min << "-" << api.versions.max << " headers";
        for (auto v = api.versions.min; v <= api.versions.max; ++v) {
            std::cout << " " << protocol::request_header_version(api, v) << "/" << protocol::response_header_version(api, v);
        }
        std::cout << (api.on_broker ? " broker" : "") << (api.on_controller ? " controller" : "") << "\n";
    }
    for (int code = -32768; code <= 32767; ++code) {
        const auto error = static_cast<protocol::ErrorCode>(code);
        if (to_string(error) == "UNKNOWN") continue;
        std::cout << "error " << code << " " << to_string(error) << (is_retriable(error) ? " retriable" : "") << "\n";
    }
}

}  // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> args(argv + 1, argv + argc);
    if (args.size() == 4 && args[0] == "generate") {
        generate(std::stoull(args[1]), std::stoi(args[2]), args[3]);
    } else if (args.size() == 3 && args[0] == "rewrite") {
        rewrite(args[1], args[2]);
    } else if (args.size() == 1 && args[0] == "tables") {
        tables();
    } else {
        give_up("generate SEED COUNT OUT | rewrite IN OUT | tables");
    }
    return 0;
}
