#include "app/worker_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>

#include "app/flags.h"
#include "app/worker_service.h"
#include "emulation/emulated_models.h"
#include "transport/link_loop.h"

namespace foliot {
namespace {

// A V100's page cache in Clockwork's evaluation, in its pages.
constexpr uint64_t kPageCacheBytes = 21'500'000'000;
constexpr uint64_t kPageBytes = uint64_t{16} << 20;

struct WorkerFlags {
  std::string emulate;
  std::string controller = "127.0.0.1:8100";
  uint32_t count = 1;
  uint64_t page_cache_bytes = kPageCacheBytes;
  uint64_t page_bytes = kPageBytes;
  WorkerServiceOptions service;
};

Status run(const WorkerFlags& flags) {
  WorkerServiceOptions options = flags.service;
  FOLIOT_ASSIGN_OR_RETURN(options.models, parse_emulated_models(flags.emulate, flags.page_bytes));
  options.page_count = static_cast<uint32_t>(flags.page_cache_bytes / flags.page_bytes);
  Status lost;
  std::function<void()> stop;
  WorkerService::Watch watch;
  watch.on_ready = [&](size_t workers) {
    if (workers < flags.count) return;
    fmt::print("ready: {} workers\n", workers);
    std::fflush(stdout);
  };
  watch.on_lost = [&](const Status& reason) {
    if (lost.ok()) lost = reason;
    stop();
  };
  std::function<Status()> connect;
  watch.connect = [&] { return connect(); };
  WorkerService service(std::move(options), std::move(watch));
  LinkLoop loop({.connection = {.role = Role::kWorker}, .stop_on_signals = true}, service);
  stop = [&] { loop.stop(); };
  connect = [&] { return loop.connect(flags.controller); };
  for (uint32_t i = 0; i < flags.count; ++i) FOLIOT_RETURN_IF_ERROR(loop.connect(flags.controller));
  loop.run();
  return lost;
}

}  // namespace

void add_worker_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("worker", "Be one or many emulated workers of a controller");
  command->footer(
      "An emulated worker does what a real one does, but for the computing: LOAD and EXEC only take the time that\n"
      "a profile says. PROFILE is a profile of the built-in V100 table, several of them (resnet50:15,resnet18 is\n"
      "fifteen models and one more), v100 for the whole table, or the CSV file of a table. It shows what a\n"
      "controller can carry.\n\n"
      "  foliot worker --emulate resnet50:15 --count 150 --controller localhost:8100");
  auto flags = std::make_shared<WorkerFlags>();
  command->add_option("--emulate", flags->emulate, "profiles of the models")->required()->type_name("PROFILE");
  command->add_option("--controller", flags->controller, "HOST:PORT of the controller")->capture_default_str();
  command->add_option("--count", flags->count, "workers, each with a connection of its own")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096));
  command->add_option("--name", flags->service.name, "what the controller's log calls them")->capture_default_str();
  add_bytes_flag(*command, "page-cache", flags->page_cache_bytes, "memory for weights of each worker");
  add_bytes_flag(*command, "page-size", flags->page_bytes, "page of the page cache");
  command->add_option("--seed", flags->service.seed, "of the noise in the durations")->capture_default_str();
  command->callback([flags, &exit_code] {
    const Status status = run(*flags);
    if (!status.ok()) fmt::print(stderr, "foliot worker: {}\n", status.message());
    exit_code = status.ok() ? 0 : 1;
  });
}

}  // namespace foliot
