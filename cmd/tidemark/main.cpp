// tidemark: looks at data directories and asks running daemons. One subcommand per function of commands.h.
#include <CLI/CLI.hpp>
#include <string>

#include "cmd/tidemark/commands.h"

int main(int argc, char** argv) {
    using namespace tidemark::tool;
    CLI::App app{"Looks at Tidemark's and Apache Kafka's log directories, and asks running daemons."};
    app.set_version_flag("--version", std::string("tidemark ") + TIDEMARK_VERSION);
    app.require_subcommand(1);
    int status_code = 0;

    DumpOptions dump_options;
    auto* dump_command = app.add_subcommand("dump", "show what is in logs, indexes, snapshots, checkpoints and the metadata log");
    dump_command->add_option("path", dump_options.paths, "files, or directories whose files are all shown")->required()->check(CLI::ExistingPath);
    dump_command->add_flag("--records", dump_options.records, "each record, not only the batches");
    dump_command->add_flag("--values", dump_options.values, "with keys and values");
    dump_command->add_flag("--json", dump_options.json, "one object a line; what is no plain text of keys and values in hexadecimal");
    dump_command->callback([&] { status_code = dump(dump_options); });

    VerifyToolOptions verify_options;
    bool batches_only = false;
    auto* verify_command = app.add_subcommand("verify", "check log directories or partitions, every byte");
    verify_command->add_option("directory", verify_options.paths)->required()->check(CLI::ExistingDirectory);
    verify_command->add_flag("--in-use", verify_options.in_use, "a daemon has them open, or was not stopped cleanly");
    verify_command->add_flag("--batches-only", batches_only, "checksums and headers, not the records inside");
    verify_command->callback([&] {
        verify_options.records = !batches_only;
        status_code = verify(verify_options);
    });

    AuditOptions audit_options;
    auto* audit_command = app.add_subcommand("audit", "where values of a key still are, what removes them and by when; 1 when something is past its deadline");
    audit_command->add_option("path", audit_options.paths, "all log directories of a broker; with --trail: the trail or its directory")->required()->check(CLI::ExistingPath);
    audit_command->add_option("--topic", audit_options.topic, "of this topic only");
    audit_command->add_option("--key", audit_options.keys)->allow_extra_args(false);
    audit_command->add_option("--key-file", audit_options.key_file, "one key a line")->check(CLI::ExistingFile);
    audit_command->add_option("--config", audit_options.config_file, "the broker's file, for its defaults")->check(CLI::ExistingFile);
    audit_command->add_option("--grace-ms", audit_options.grace_ms, "beyond a deadline before it counts as missed; two backoffs and five seconds by themselves");
    audit_command->add_flag("--json", audit_options.json, "one object a line");
    audit_command->add_flag("--trail", audit_options.trail, "show the audit trail: what was cleaned and deleted, when and why");
    audit_command->callback([&] { status_code = audit(audit_options); });

    DaemonAddress daemon;
    const auto add_http = [&](CLI::App* command) { command->add_option("--http", daemon.http, "the daemon's http.listener")->capture_default_str(); };
    const auto add_socket = [&](CLI::App* command) { command->add_option("--admin-socket", daemon.admin_socket, "the daemon's admin.socket")->capture_default_str(); };

    PlanOptions plan_options;
    auto* plan_command = app.add_subcommand("plan", "what a running daemon will clean and delete next, and why");
    add_http(plan_command);
    plan_command->add_option("--log-dir", plan_options.log_dirs, "all log directories of a broker that does not run, instead of asking one")->check(CLI::ExistingDirectory);
    plan_command->add_option("--config", plan_options.config_file, "that broker's file")->check(CLI::ExistingFile);
    plan_command->add_flag("--cleaner", plan_options.cleaner_only, "only what is cleaned");
    plan_command->add_flag("--retention", plan_options.retention_only, "only what is deleted");
    plan_command->add_option("--topic", plan_options.topic, "retention of this topic only");
    std::vector<std::string> tried;
    plan_command->add_option("--set", tried, "key=value: what retention would do with another setting of the topics or the broker")->allow_extra_args(false)->check([](const std::string& text) {
        return text.find('=') == std::string::npos ? "--set wants key=value" : std::string{};
    });
    plan_command->callback([&] {
        for (const auto& text : tried) plan_options.settings.emplace_back(text.substr(0, text.find('=')), text.substr(text.find('=') + 1));
        plan_options.daemon = daemon;
        status_code = plan(plan_options);
    });

    CleanOptions clean_options;
    auto* clean_command = app.add_subcommand("clean", "clean a topic or partition now, whatever the dirty ratio, and erase what DeleteRecords left in its first segment");
    add_socket(clean_command);
    add_http(clean_command);
    clean_command->add_option("--log-dir", clean_options.log_dirs, "all log directories of a broker that does not run, instead of asking one")->check(CLI::ExistingDirectory);
    clean_command->add_option("--config", clean_options.config_file, "that broker's file")->check(CLI::ExistingFile);
    clean_command->add_flag("--roll", clean_options.roll, "roll the active segment first, so that it is cleaned, too");
    clean_command->add_flag("--wait", clean_options.wait, "until it is done, with progress");
    clean_command->add_option("topic", clean_options.topic)->required();
    clean_command->add_option("partition", clean_options.partition, "without it all of the topic");
    clean_command->callback([&] {
        clean_options.daemon = daemon;
        status_code = clean(clean_options);
    });

    RepairToolOptions repair_options;
    std::pair<std::string, std::int32_t> repair_log;
    auto* repair_command = app.add_subcommand("repair", "what became of damaged logs: show it, put back what is valid, or let go of it");
    repair_command->add_option("directory", repair_options.paths, "log directories that no daemon uses")->check(CLI::ExistingDirectory);
    auto* restore_flag = repair_command->add_flag("--restore", repair_options.restore, "put the valid batches back behind the end of their logs");
    repair_command->add_flag("--drop", repair_options.drop, "let the logs end where they were cut")->excludes(restore_flag);
    auto* in_daemon = repair_command->add_option("--daemon", repair_log, "TOPIC PARTITION: have a running daemon do it");
    add_socket(repair_command);
    repair_command->callback([&] {
        if (in_daemon->count() == 0) {
            if (repair_options.paths.empty()) throw CLI::RequiredError("directory");
            status_code = repair(repair_options);
            return;
        }
        if (!repair_options.restore && !repair_options.drop) throw CLI::RequiredError("--restore or --drop");
        status_code = repair_in_daemon({.daemon = daemon, .topic = repair_log.first, .partition = repair_log.second, .restore = repair_options.restore});
    });

    auto* status_command = app.add_subcommand("status", "who a running daemon is and how it does");
    add_socket(status_command);
    status_command->callback([&] { status_code = status(daemon); });

    auto* clock_command = app.add_subcommand("confirm-clock", "tell a running daemon that the wall clock is right");
    add_socket(clock_command);
    clock_command->callback([&] { status_code = confirm_clock(daemon); });

    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        return app.exit(e) == 0 ? 0 : 2;
    }
    return status_code;
}
