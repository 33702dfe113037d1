#include "app/commands/top_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>

#include "app/commands/exit_code.h"
#include "app/commands/server_call.h"
#include "observe/monitor/feed.h"
#include "observe/monitor/feed_text.h"

namespace foliot {
namespace {

constexpr auto kTopInterval = std::chrono::seconds(1);
constexpr const char* kClearScreen = "\x1b[H\x1b[2J";

struct TopFlags {
  ServerPlace server{.url = "localhost:8002"};
  bool once = false;
  bool json = false;
};

// Until it is interrupted, or once.
Status run(const TopFlags& flags) {
  FeedText feed;
  for (;;) {
    FOLIOT_ASSIGN_OR_RETURN(const std::string body,
                            ask_server(flags.server, {.path = "/monitor/feed?since=" + feed.next(), .headers = {}}));
    const Result<std::string> text = feed.show(body);
    if (!text.ok()) {
      return Status::unavailable(
          fmt::format("{} has no monitor feed of version {} ({}): give the metrics port of `foliot serve` or `foliot "
                      "controller`",
                      flags.server.url, MonitorFeed::kVersion, text.status().message()));
    }
    fmt::print("{}{}", !flags.json && !flags.once && isatty(STDOUT_FILENO) == 1 ? kClearScreen : "",
               flags.json ? body + '\n' : *text);
    std::fflush(stdout);
    if (flags.once) return Status();
    std::this_thread::sleep_for(kTopInterval);
  }
}

}  // namespace

void add_top_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("top", "Show what a running server does, once a second");
  command->footer(
      "Reads the feed of the monitor page, at the metrics port of `foliot serve` or `foliot controller`. Counts are "
      "of\n"
      "all since that process began; rates of the last second; quantiles of the requests that the answer lists.\n\n"
      "  foliot top                            of localhost:8002\n"
      "  foliot top --once controller:8102\n"
      "  foliot top --once --json | jq .models");
  auto flags = std::make_shared<TopFlags>();
  command->add_option("url,--url", flags->server.url, "metrics port of the server, HOST:PORT")->capture_default_str();
  command->add_option("--key-file", flags->server.key_file, "file with the API key")->type_name("FILE");
  command->add_flag("--once", flags->once, "show it once");
  command->add_flag("--json", flags->json, "print the feed's answers, one in each line");
  command->callback([flags, &exit_code] {
    const Status status = run(*flags);
    if (!status.ok()) fmt::print(stderr, "foliot top: {}\n", status.message());
    exit_code = status.ok() ? 0 : kExitFailed;
  });
}

}  // namespace foliot
