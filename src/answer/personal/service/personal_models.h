// PersonalModels: the personal models of a repository, while they are served: PersonalService over a
// PersonalModel each.
//
// Reads (predict, topK) are carried out by threads of their own and refused at once where they would miss their
// deadline (read_queue.h). Observations go to the log by the thread that brings them; they wait for a read of the
// same model for the time of one user's weights.
//
// A version with a higher number is taken by load(), and with watch() as it appears. One that cannot be
// taken leaves the one before in service, with the reason in the catalog. An operator takes any version, or the one
// before again: then no other one of those that are there is taken until there is a newer one, also after a restart,
// and by all front ends that share the users (version_note.h).
//
// Where another model computes the features (feature_source.h), a call first takes them from there. Such a model is
// served once that model is; a new version of it is taken as soon as the features of all items that users observed
// are computed by it. Until then known items are served by the version before, and calls with others are refused (503).
//
// Bounded: reads that wait (Options::reads_max); the rest as PersonalModel.
//
// Threading: as PersonalService; open(), watch() and stop() by one owner, the rest by any thread.
#ifndef FOLIOT_ANSWER_PERSONAL_SERVICE_PERSONAL_MODELS_H_
#define FOLIOT_ANSWER_PERSONAL_SERVICE_PERSONAL_MODELS_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "answer/inference/inference.h"
#include "answer/inference/personal_service.h"
#include "answer/personal/service/catalog_follower.h"
#include "answer/personal/service/feature_asker.h"
#include "answer/personal/service/feature_source.h"
#include "answer/personal/service/personal_file.h"
#include "answer/personal/service/personal_model.h"
#include "answer/personal/service/read_queue.h"
#include "answer/personal/service/version_note.h"
#include "foundation/base/mutex.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/core/catalog.h"
#include "foundation/core/request.h"
#include "foundation/core/version_list.h"
#include "foundation/platform/thread.h"
#include "foundation/store/disk_storage.h"
#include "foundation/store/user_store.h"

namespace foliot {

// Of one model, since the start.
struct PersonalCounters {
  static constexpr std::array kReadMicroseconds{100, 1'000, 10'000, 100'000, 1'000'000};  // limits of read_durations

  std::atomic<uint64_t> predictions{0};  // calls that were answered, as what follows
  std::atomic<uint64_t> top_ks{0};
  std::atomic<uint64_t> observations{0};  // not calls
  std::atomic<uint64_t> forgotten{0};     // users
  std::atomic<uint64_t> waiting{0};       // changes that wait for the disk
  std::atomic<uint64_t> errors{0};        // calls that were wrong or over a limit
  std::array<std::atomic<uint64_t>, static_cast<size_t>(kRefusalLast) + 1> refused{};  // calls, by Refusal
  std::array<std::atomic<uint64_t>, kReadMicroseconds.size() + 1> read_durations{};    // of topK, not cumulative
  std::atomic<uint64_t> read_nanoseconds{0};                                           // of topK
};

class PersonalModels : public PersonalService {
 public:
  struct Options {
    uint32_t threads = 1;     // of reads
    size_t reads_max = 4096;  // that wait
    uint64_t seed = 0;        // random in a server
    // Users have copies on other front ends. Features must be in tables, and weights follow from observations alone:
    // trained ones are of the log of one server.
    bool is_shared = false;
    std::function<TimePoint()> now;
    // Models that could not be served when the server started, such as for a full disk, are tried so often again.
    Duration retry_interval = Duration::seconds(5);
    // Between looks for versions that another front end was asked to take, where users are shared.
    Duration choices_interval = Duration::seconds(1);
    // Of versions that cannot be taken, from any thread.
    std::function<void(const std::string&)> on_failure = [](const std::string&) {};
  };

  // The catalog outlives this.
  PersonalModels(Options options, Catalog& catalog)
      : options_(std::move(options)), catalog_(catalog), asker_(catalog, options_.now) {}
  ~PersonalModels() override { stop(); }

  // Before open(): features are computed by what answers here, which has at most `rows_max` rows in flight.
  void use(Inference& inference, uint32_t rows_max) {
    inference_ = &inference;
    rows_max_ = rows_max;
  }
  // Once: serves these; one that is broken is shown as unavailable. One whose observations cannot be opened, or written
  // for a full disk, is tried again until it is served, unless it is shared. Their observations are in folders of
  // `observations`, which is made if there is none. Errors: kInvalidArgument if that cannot be used.
  Status open(std::vector<PersonalSpec> specs, const std::filesystem::path& observations);
  // Until those are served whose features can be computed now, or `is_over` returns true. After open().
  void wait_for_features(const std::function<bool()>& is_over);
  // Looks for newer versions from now on.
  Status watch(Duration interval);
  // Calls from now on are refused (kDraining).
  void drain() { draining_ = true; }
  // Writes what waits; reads that wait are refused. REQUIRES: no call follows. Calling it again does nothing.
  void stop();

  // After open(): all models, and those of them that are served.
  size_t size() const { return models_.size(); }
  size_t served() const {
    return static_cast<size_t>(
        std::ranges::count_if(models_, [](const auto& model) { return model.second->is_served.load(); }));
  }
  bool has(std::string_view name) const { return find(name) != nullptr; }
  // null: it is not served. After open(), until stop().
  PersonalModel* model(std::string_view name) const {
    const Served* const served = find(name);
    return served == nullptr || !served->is_served ? nullptr : served->model.get();
  }
  // Those that are served, by name, and on how many front ends each of their users is to be.
  std::vector<std::pair<std::string, size_t>> replicas() const;
  // Takes the newest version, unless an operator took another one when it was there already. Errors: kNotFound; why it
  // is not taken.
  Status load(const std::string& name);
  // Takes or compares a version, as an operator asks for it. Errors: also kInvalidArgument for a request that cannot be
  // carried out; of one that is only compared, none if it is worse; kInternal: it is served, but this could not be
  // written.
  Status load(const std::string& name, const VersionRequest& request);
  // Waits for the disk, not for a version that is being taken. Errors: kNotFound; kUnavailable: it is not served.
  Result<VersionList> versions(const std::string& name) const;
  // An operator took the version that is served, or is to be, when the newest was there already.
  bool is_chosen(const std::string& name) const;
  // Takes the version in `folder` of a model that is shared, and moves it into the model's, where the others find it
  // and take it without a comparison of their own. Errors: why it is not taken, or cannot be moved.
  Status publish(const std::string& name, const std::filesystem::path& folder);
  // Calls that are not answered yet.
  uint64_t in_flight() const { return in_flight_; }
  // After drain(). False: some are not.
  bool wait_until_answered(Duration timeout);

  void predict(const PersonalCall& call, std::vector<UserItem> pairs, PersonalDone done) override;
  void top_k(const PersonalCall& call, TopKQuery query, PersonalDone done) override;
  void observe(const PersonalCall& call, std::vector<ItemObservation> observations, PersonalDone done) override;
  void forget(const PersonalCall& call, std::vector<uint64_t> users, PersonalDone done) override;

  struct Statistics {
    std::string model;
    const PersonalCounters* counters;
    PersonalStatistics learned;
    uint64_t snapshots = 0;
    uint64_t torn_bytes = 0;
    const FeatureSource* features = nullptr;         // null: in a table
    std::optional<UserMemory::Statistics> memory{};  // nullopt: all users are in memory
  };
  // Of those that are served, by name.
  std::vector<Statistics> statistics() const;
  // nullopt: it is not served.
  std::optional<Statistics> statistics(const std::string& name) const;
  // The server retrains these: spec, and folder of the log. Both live until this is destroyed.
  struct Retrained {
    const PersonalSpec* spec;
    const std::filesystem::path* observations;
  };
  std::vector<Retrained> retrained() const;
  size_t waiting_reads() const;

 private:
  struct Served {
    PersonalSpec spec;
    std::atomic<bool> is_served{false};         // once true, until stop()
    std::unique_ptr<PersonalModel> model{};     // of one that is served, until stop()
    std::unique_ptr<FeatureSource> features{};  // null: in a table
    std::filesystem::path observations{};       // its folder
    std::unique_ptr<DiskStorage> storage{};     // until there is a model, guarded by load_mutex_ as what follows
    std::shared_ptr<ComputedItems> computed{};  // of the model's version
    std::string failure{};                      // that was reported last, as what follows guarded by load_mutex_
    bool is_tried_again = false;                // what it failed for may pass
    std::string refused_version{};              // that was not taken; guarded by load_mutex_
    std::string before{};                       // version; guarded by versions_mutex_, as is `tried`
    std::atomic<uint64_t> items{0};             // of the version
    PersonalCounters counters{};
    ReadCost cost{};                              // guarded by mutex_
    std::map<std::string, VersionEntry> tried{};  // versions, by name, since the start
  };
  // A call that was admitted.
  struct Call;
  using CallPtr = std::shared_ptr<Call>;

  Served* find(std::string_view name) const;
  static Statistics statistics_of(const Served& served);
  Result<PersonalVersion> open_version(const std::filesystem::path& folder) const;
  // open() calls it for each, and again for those that it left out.
  Status serve(Served& served);
  Status open_model(Served& served);
  Status open_model(Served& served, std::unique_ptr<DiskStorage> storage, PersonalVersion version);
  // Of users that do not fit into memory; null: all are to be in memory.
  Result<std::shared_ptr<UserStore>> open_store(const Served& served) const;
  // Returns which of the versions is served first; nullopt: the newest.
  std::optional<std::filesystem::path> version_to_begin(Served& served) const;
  void note_version(const Served& served) const;
  void report(const Served& served, const std::string& line) const;
  // Where features are computed: takes the version of the feature model that is served. False: later.
  bool follow(Served& served);
  Status take_features(Served& served, const FeatureModel& model);
  void show(Served& served, const std::string& reason);
  // These are what watching threads do.
  Status load_by_itself(Served& served);
  Status follow_choice(Served& served);
  Status serve_again(Served& served) REQUIRES(load_mutex_);
  // `again`: also one that was not taken before.
  Status load_newest(Served& served, bool again) REQUIRES(load_mutex_);
  Status take_chosen(Served& served, const TakenVersion& choice, bool again) REQUIRES(load_mutex_);
  Status take_and_show(Served& served, const std::filesystem::path& folder, PersonalModel::PoolCheck check)
      REQUIRES(load_mutex_);
  Status choose(Served& served, const VersionRequest& request) REQUIRES(load_mutex_);
  Status compare(Served& served, const std::filesystem::path& folder) REQUIRES(load_mutex_);
  void set_before(Served& served, const std::string& before) REQUIRES(load_mutex_);
  Result<std::filesystem::path> wanted_version(const Served& served, const VersionRequest& request) const
      REQUIRES(load_mutex_);
  // These are for the model that is served.
  Status write_choice(const Served& served, const std::string& newest) const;
  std::filesystem::path choice_file(const Served& served) const;
  // nullopt: there is none, or a newer version.
  std::optional<TakenVersion> choice_of(const Served& served) const;
  // Errors: as swap().
  Status take(Served& served, const std::filesystem::path& folder, PersonalModel::PoolCheck check);
  CallPtr admit(const PersonalCall& call, uint32_t requests, PersonalDone& done);
  // Items of the call, in their order, and their features; an error answers the call.
  using WithRows = std::function<void(const std::shared_ptr<const ComputedRows>& rows)>;
  void resolve(const CallPtr& call, const PersonalCall& given, std::vector<uint64_t> items, WithRows next);
  // A part of observations, of one user and query, from `places` on; `rows`: null: in a table.
  Status observe_group(const CallPtr& call, std::span<const ItemObservation> group, const ComputedRows* rows,
                       std::span<const size_t> places);
  void observe_all(const CallPtr& call, const std::vector<ItemObservation>& observations, const ComputedRows* rows);
  // `units`: of work (ReadCost).
  void start_read(CallPtr call, uint64_t units, std::function<Result<PersonalAnswer>()> read);
  // A part of a call is over, such as the writing of a record; the last one answers.
  void on_changed(const CallPtr& call, const Status& status);
  void finish(Call& call, std::variant<PersonalAnswer, Status> result);
  void refuse(Call& call, Refusal refusal, TimePoint earliest);
  // The error of a feature model.
  void fail(Call& call, CallError error);
  void count_answered();
  void run_reads();
  using Look = Status (PersonalModels::*)(Served& served);
  Status start_watching(Thread& thread, Duration interval, Look look);
  void run_watch(Duration interval, Look look);
  // Until none is left to be tried again.
  void run_retries();

  const Options options_;
  Catalog& catalog_;
  std::map<std::string, std::unique_ptr<Served>, std::less<>> models_;  // does not change after open()
  Inference* inference_ = nullptr;                                      // null: no features can be computed
  uint32_t rows_max_ = 0;
  std::atomic<bool> is_open_{false};
  std::atomic<bool> draining_{false};
  std::atomic<uint64_t> in_flight_{0};
  Mutex load_mutex_;
  mutable Mutex versions_mutex_;  // taken last

  mutable Mutex mutex_;
  Condition changed_;
  Condition stopped_;
  Condition answered_;
  std::unique_ptr<ReadQueue> queue_ PT_GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::vector<Thread> threads_;
  Thread watcher_;
  Thread chooser_;  // where users are shared
  Thread retrier_;

  FeatureAsker asker_;
  std::unique_ptr<CatalogFollower> follower_;  // null: no features are computed
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PERSONAL_SERVICE_PERSONAL_MODELS_H_
