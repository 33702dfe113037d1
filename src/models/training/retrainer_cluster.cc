// Retrainer: for all front ends of a cluster.
#include <fmt/format.h>

#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "answer/personal/items/personal_version.h"
#include "answer/personal/service/personal_model.h"
#include "answer/personal/service/version_note.h"
#include "models/training/gathered_log.h"
#include "models/training/made_versions.h"
#include "models/training/retrainer.h"

namespace foliot {
namespace {

namespace fs = std::filesystem;

constexpr const char* kGatheredFolder = "gathered";   // beside the leader's log
constexpr std::string_view kTraining = ".training.";  // a folder in that of a model, and when it was made
constexpr const char* kParquet = "observations.parquet";
constexpr size_t kUsersAtOnce = 64;  // whose copies are gathered
// What could not be taken, a file that is not whole yet or a disk that is away, is tried again after so long.
constexpr Duration kTakesAgain = Duration::seconds(30);

}  // namespace

// What a leader that was killed has left has users that may be forgotten by now.
void Retrainer::remove_gathered(const fs::path& state) {
  std::error_code ignored;
  fs::remove_all(state / kGatheredFolder, ignored);
}

bool Retrainer::lead() {
  for (Model& model : retrained_) follow(model);
  std::optional<std::vector<std::string>> led = options_.peers->led();
  if (led && !leads_) {
    for (Model& model : retrained_) model.counts_anew = read_note(model);
  }
  leads_ = led.has_value();
  if (led) peers_ = *std::move(led);
  return leads_;
}

void Retrainer::follow(Model& model) {
  const std::optional<PersonalModels::Statistics> statistics = models_.statistics(model.spec->name);
  const std::string name = newest_name(model.spec->folder);
  std::error_code ignored;
  const bool is_new = statistics && name != statistics->learned.version &&
                      fs::exists(model.spec->folder / name / kMadeByServer, ignored);
  const bool failed_before = name == model.failed_version;
  const TimePoint now = options_.now();
  if (!is_new || (failed_before && now < model.takes_again) || models_.is_chosen(model.spec->name)) return;
  const Status taken = models_.load(model.spec->name);
  model.failed_version = taken.ok() ? "" : name;
  model.takes_again = now + kTakesAgain;
  if (!taken.ok() && failed_before) return;
  const std::string line =
      taken.ok() ? fmt::format("version {} of another front end is served", name) : std::string(taken.message());
  options_.log(!taken.ok(), fmt::format("personal model '{}': {}", model.spec->name, line));
}

std::optional<RetrainSchedule::Facts> Retrainer::shared_facts(Model& model) const {
  const std::string& name = model.spec->name;
  const std::optional<PersonalModels::Statistics> statistics = models_.statistics(name);
  if (!statistics) return std::nullopt;
  // Of a front end that has started again, all since then.
  const auto count = [&model](const std::string& frontend, uint64_t observations) {
    uint64_t& before = model.of_peers[frontend];
    model.of_all += observations < before ? observations : observations - before;
    before = observations;
  };
  const PersonalStatistics& own = statistics->learned;
  RetrainSchedule::Facts all{
      .version = own.version, .quality = own.retrain, .of_version = own.observations, .withheld = own.withheld};
  count("", statistics->counters->observations);
  for (const std::string& peer : peers_) {
    const Result<RetrainPeers::Facts> facts = options_.peers->facts(peer, name);
    if (!facts.ok()) return std::nullopt;
    count(peer, facts->observations);
    if (facts->version != own.version) continue;  // it takes the leader's in a moment
    all.of_version += facts->of_version;
    if (all.quality.empty() && !facts->quality.empty()) {
      all.quality = fmt::format("{}, by front end '{}'", facts->quality, peer);
    }
  }
  if (std::exchange(model.counts_anew, false)) model.of_all = 0;
  all.observations = model.of_all;
  return all;
}

std::optional<Retrainer::Ended> Retrainer::train_for_all(const Model& model, const std::string& served) {
  const fs::path& folder = model.spec->folder;
  const Place place{.folder = folder / fmt::format("{}{}", kTraining, options_.wall().nanoseconds()),
                    .state = model.state / kGatheredFolder};
  const std::string before = newest_name(folder);
  Status ran = stage(model, place, served);
  if (ran.ok()) ran = gather(model, place);
  const fs::path note = place.state / kServedFile;
  if (ran.ok()) ran = write(VersionNote{.served = served}, note, note.string() + ".new");
  if (ran.ok()) ran = run_command(model, place);
  remove_gathered(model.state);
  const std::string name = newest_name(place.folder);
  if (ran.ok() && name == before) {
    ran = Status::internal(fmt::format("its command left no version above {} in {{folder}}", before));
  }
  if (ran.ok()) ran = PersonalVersion::open(place.folder / name).status();
  if (ran.ok()) ran = still_leads();
  const Status taken = ran.ok() ? models_.publish(model.spec->name, place.folder / name) : ran;
  if (!taken.ok() && name != before) set_aside(place.folder / name, folder);
  std::error_code ignored;  // without Parquet there is none
  if (ran.ok()) fs::rename(place.folder / kParquet, folder / kParquet, ignored);
  fs::remove_all(place.folder, ignored);
  if (stopping_) return std::nullopt;
  if (!ran.ok() || taken.code() == StatusCode::kInternal) {
    return Ended{.outcome = RetrainOutcome::kFailed, .report = fmt::format("retraining failed: {}", taken.message())};
  }
  if (!taken.ok()) return Ended{.outcome = RetrainOutcome::kNotTaken, .report = std::string(taken.message())};
  remove_older(folder, name, served);
  return Ended{.outcome = RetrainOutcome::kTaken,
               .report = fmt::format("version {} is better on what is withheld from trainers, and is served", name)};
}

// Users that moved while they were gathered are missing, and another leader may have made a version meanwhile.
Status Retrainer::still_leads() const {
  const std::optional<std::vector<std::string>> led = options_.peers->led();
  if (led && *led == peers_) return Status();
  return Status::unavailable("front ends have come, gone or moved users meanwhile");
}

// The newest version and the served one are there by links. The command of a leader that was killed may still run: it
// has no place then to leave a version in.
Status Retrainer::stage(const Model& model, const Place& place, const std::string& served) {
  const fs::path& folder = model.spec->folder;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    std::error_code ignored;
    if (entry.path().filename().string().starts_with(kTraining)) fs::remove_all(entry.path(), ignored);
  }
  fs::create_directory(place.folder, error);
  if (!error) fs::copy_file(folder / "personal.toml", place.folder / "personal.toml", error);
  for (const std::string& version : std::set<std::string>{newest_name(folder), served}) {
    if (!error) fs::create_directory_symlink(fs::path("..") / version, place.folder / version, error);
  }
  if (!error) return Status();
  return Status::internal(
      fmt::format("{}: cannot be written: {}; the front end that retrains must be able to write there",
                  place.folder.string(), error.message()));
}

Status Retrainer::gather(const Model& model, const Place& place) const {
  const std::string& name = model.spec->name;
  FOLIOT_ASSIGN_OR_RETURN(GatheredLog log, GatheredLog::make(place.state));
  const auto add = [&](const std::vector<std::vector<std::byte>>& copies) {
    for (const std::vector<std::byte>& copy : copies) FOLIOT_RETURN_IF_ERROR(log.add(copy));
    return stopping_ ? Status::unavailable("the server stops") : Status();
  };
  PersonalModel::UserPass own;
  for (bool is_over = false; !is_over;) {
    FOLIOT_ASSIGN_OR_RETURN(const PersonalModel::Copies some,
                            models_.model(name)->copies(own, kUsersAtOnce, [](uint64_t) { return true; }));
    FOLIOT_RETURN_IF_ERROR(add(some.copies));
    is_over = some.is_over;
  }
  for (const std::string& peer : peers_) {
    uint64_t pass = 0;
    do {
      FOLIOT_ASSIGN_OR_RETURN(const RetrainPeers::Copies some, options_.peers->copies(peer, name, pass));
      FOLIOT_RETURN_IF_ERROR(add(some.copies));
      pass = some.pass;
    } while (pass != 0);
  }
  FOLIOT_RETURN_IF_ERROR(still_leads());
  return log.finish();
}

}  // namespace foliot
