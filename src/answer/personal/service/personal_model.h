// PersonalModel: a model with weights for each user, which learns from each observation, from the next
// request on, and loses none (Velox, chapter 2):
//
//   prediction(user, item) = weights(user) . features(item)
//
// Observations are records of a log (foundation/store/record_log.h). One counts once it is on disk, and is then
// answered; with `durability_is_async` it is answered at once, and a crash may lose what came in the last moments.
// State after a restart is the last snapshot and the rest of the log. Ids make retries harmless: of one user, each id
// counts once.
//
// A version (personal_version.h) is served until another one is swapped in. Users keep their observations, so none
// is lost or counted twice; their weights by the new version are made beside those that are served.
//
// Losses are squared errors of predictions by the weights that were last read, or that are at most
// kUnsettledMax observations old. They begin anew with each version and each start of the process.
//
// Where another model computes the features (personal_version.h), calls bring them along with what items are, and
// the model keeps both for the items that users observed: another version of that model computes them anew. They leave
// when no user has an observation of the item any more.
//
// Bounded: what waits for the disk (RecordLog), observations of a user, users, matrices of users. State is
// in memory: some 24 bytes for each observation, and 4 d for the weights of each user. With a UserStore, only the users
// that are in use are (user_memory.h).
//
// Threading: any. Reads wait for each other for some microseconds, never for the disk, unless the user is in the store.
// Changes do not wait.
#ifndef FOLIOT_ANSWER_PERSONAL_SERVICE_PERSONAL_MODEL_H_
#define FOLIOT_ANSWER_PERSONAL_SERVICE_PERSONAL_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "answer/personal/items/exploration.h"
#include "answer/personal/items/known_items.h"
#include "answer/personal/items/list_cache.h"
#include "answer/personal/items/personal_version.h"
#include "answer/personal/items/top_k.h"
#include "answer/personal/service/personal_statistics.h"
#include "answer/personal/storage/stored_user.h"
#include "answer/personal/storage/user_memory.h"
#include "answer/personal/storage/user_records.h"
#include "answer/personal/storage/waiting_changes.h"
#include "answer/personal/storage/weight_table.h"
#include "answer/personal/weights/drawn_places.h"
#include "answer/personal/weights/drift_detector.h"
#include "answer/personal/weights/observation_table.h"
#include "foundation/base/mutex.h"
#include "foundation/base/random.h"
#include "foundation/base/status.h"
#include "foundation/core/user_digest.h"
#include "foundation/core/version_list.h"
#include "foundation/store/record_log.h"
#include "foundation/store/storage.h"
#include "foundation/store/user_store.h"

namespace foliot {

struct UserPrediction {
  float value = 0;
  uint64_t observations = 0;  // of the user, so far
  std::string version{};
};

struct TopK {
  std::vector<ScoredItem> places{};  // best first; which of them are of the validation pool
  uint64_t query = 0;                // observations that follow from this answer name it
  std::string version{};
};

// Items of a call, by the version of the feature model that computed their features.
struct ComputedRows {
  std::shared_ptr<ComputedItems> by;
  std::vector<uint64_t> items{};
  std::vector<ItemInput> inputs{};  // null: the item is known
  std::vector<float> values{};      // by->width() of each item

  std::span<const float> row(size_t index) const { return std::span(values).subspan(index * by->width(), by->width()); }
};

class PersonalModel : private LogReader, private LogSink, private SnapshotSource {
 public:
  static constexpr size_t kObservationsPerCallMax = 1000;
  // Those of two front ends that did not know of each other's, and weights, fit into one record of a snapshot.
  static constexpr size_t kObservationsPerUserMax = 20'000;
  static constexpr size_t kPlacesMax = 10000;  // k of top_k()
  static constexpr size_t kUnsettledMax = 16;
  // Versions are compared on the last observations that are withheld from trainers. There must be so many before one
  // that was trained is taken, and it must be better; others must not be worse, if there are so many.
  static constexpr size_t kPoolMax = 1024;
  static constexpr size_t kPoolMin = 30;
  enum class PoolCheck { kNotWorse, kNone, kOnly };  // kOnly: it is compared, and not taken

  struct Options {
    WeightTable::Options table{};
    Exploration exploration{};
    bool durability_is_async = false;
    // Users have copies on other front ends. Then the table keeps how often each user was forgotten, as one of
    // users_max.
    bool is_shared = false;
    float value_min = -1e6F;  // values are clipped to this range before they are recorded
    float value_max = 1e6F;
    size_t observations_per_user_max = 4096;
    size_t users_max = 10'000'000;
    uint64_t observations_per_snapshot = 1'000'000;
    Duration snapshot_after = Duration::seconds(int64_t{24} * 60 * 60);  // what was forgotten leaves the disk by then
    RetrainLimits retrain{};
    GroupCommit::Limits log{};
    uint64_t lists_bytes_max = 16 << 20;            // of the best of all items, where exploration draws no weights
    uint64_t inputs_bytes_max = uint64_t{1} << 30;  // of the items that are known, where features are computed
    uint64_t seed = 0;                              // random in a server
    uint64_t users_bytes_max = 0;                   // of users in memory, where there is a store for the others
    // Of the store, while the model is opened or served; any thread. It must not call the model.
    std::function<void(const std::string&)> on_failure = [](const std::string&) {};
  };
  // On the log's thread, on one that reads users, or on the caller's before the call returns. It must not block.
  using Done = std::function<void(const Status&)>;

  // Reads the state. `store`: of users that do not fit into memory; null: all do. Errors: kInvalidArgument naming the
  // option or what is wrong with the version; as its log and the store.
  static Result<std::unique_ptr<PersonalModel>> open(std::unique_ptr<Storage> storage, const PersonalVersion& version,
                                                     const Options& options,
                                                     const std::shared_ptr<UserStore>& store = nullptr);
  // Writes what waits.
  ~PersonalModel() override;

  // Reads wait for the store if the user is there, and may then fail: kUnavailable.
  // Errors: kNotFound naming the item.
  Result<UserPrediction> predict(uint64_t user, uint64_t item);
  // `items` are the candidates; empty: all. Errors: kNotFound naming an item, kInvalidArgument
  // for k = 0 or above kPlacesMax and for an item that is named twice.
  Result<TopK> top_k(uint64_t user, std::span<const uint64_t> items, size_t k);

  // The same where features are computed: of `rows`, and of all of them. Errors: kUnavailable if another version of the
  // feature model is served by now.
  Result<UserPrediction> predict(uint64_t user, const ComputedRows& rows, size_t index);
  Result<TopK> top_k_of(uint64_t user, const ComputedRows& rows, size_t k);

  // Observations of one user, all or none of them. After an error `done` is not called; otherwise once, with an
  // error if they could not be written: then they may be there after a restart or not, and may be sent again
  // with the same ids. Errors: kNotFound naming the item; kInvalidArgument for a value that is not finite,
  // an empty list or one above kObservationsPerCallMax; kResourceExhausted over a limit; kUnavailable as the store's.
  // Of a user that is in the store `done` gets the errors that follow from its observations. `query`: of the answer of
  // top_k() that they follow from: those of items that were drawn in it become part of the validation pool; 0: none.
  Status observe(uint64_t user, std::span<const UserObservation> observations, Done done, uint64_t query = 0);
  // The same where features are computed: observation i is of item `places[i]` of `rows`. Errors beside these:
  // kInvalidArgument for an item that is known with another input, and for inputs that do not fit into a record;
  // kUnavailable as predict(), and for an item that is not known while another version is being made.
  Status observe(uint64_t user, std::span<const UserObservation> observations, const ComputedRows& rows,
                 std::span<const size_t> places, Done done, uint64_t query = 0);
  // null: it is not known.
  ItemInput input_of(uint64_t item);
  // All items whose features another version must have; until end_version() there will be no others.
  std::vector<KnownItem> begin_version();
  void end_version();

  // Copies of users, where they are shared with other front ends; features are in a table. Of what is on disk. They
  // wait for the store as reads do, with its errors. Digests of `count` users at most, from where the pass is, which
  // moves on; empty: there are no more. A user that moves meanwhile, or that another pass meets, may be met twice.
  struct UserPass {
    size_t place = 0;
    UserMemory::Cursor stored{};
  };
  Result<std::vector<UserDigest>> digests(UserPass& pass, size_t count);
  // Copies, as copy() gives them, of users with observations that `is_wanted` says. At most `count` users are looked
  // at.
  struct Copies {
    std::vector<std::vector<std::byte>> copies{};
    bool is_over = false;  // the pass has met all users
  };
  Result<Copies> copies(UserPass& pass, size_t count, const std::function<bool(uint64_t user)>& is_wanted);
  // Of an unknown user: zeros.
  Result<UserDigest> digest(uint64_t user);
  // For merge() of another model; empty: the user is unknown.
  Result<std::vector<std::byte>> copy(uint64_t user);
  // The same with only those observations that have these ids.
  Result<std::vector<std::byte>> copy(uint64_t user, const std::vector<uint64_t>& ids);
  // Adds what the copy has and this model has not: the user's limits held where it was observed. Without effect on a
  // later generation. Errors: kInvalidArgument if it is no copy; as observe() does, and `done` likewise.
  Status merge(std::span<const std::byte> copy, const Done& done);
  // Removes the user from this model alone, unless it has changed since the digest was taken. `done` is called once:
  // one that could not be written may be tried again.
  void drop(const UserDigest& digest, const Done& done);

  // The user is unknown then. From the files it is gone once snapshots have replaced those written so far.
  Status forget(uint64_t user, const Done& done);
  // Begins one as soon as possible.
  void request_snapshot() { log_->request_snapshot(); }

  // Serves this version from here on. Takes as long as making the weights of all users anew, while calls are served
  // by the version before. Errors, after which that one is still served: kInvalidArgument naming what is wrong with
  // the version, that it was trained on another log, and, unless kNone, that it is worse; kUnavailable: too little is
  // withheld to compare it. `comparison`: what it came to, if there was one.
  Status swap(PersonalVersion version, PoolCheck check = PoolCheck::kNotWorse,
              std::optional<VersionComparison>* comparison = nullptr);
  std::string version();
  PersonalStatistics statistics();
  // Of a user, since the version is served; nullopt: the user is unknown, or cannot be read.
  std::optional<RunningLoss> loss(uint64_t user);

  size_t users();
  // Of a user that is unknown or cannot be read: none.
  std::vector<UserObservation> observations(uint64_t user);
  // nullopt: all users are in memory.
  std::optional<UserMemory::Statistics> memory();
  // What was cut off from the log when it was opened.
  uint64_t torn_bytes() const { return log_->torn_bytes(); }
  uint64_t snapshots();

 private:
  // Losses since a version is served.
  struct Losses {
    RunningLoss overall{};
    RunningLoss pool{};
    DriftDetector drift{};
  };
  using PoolPlace = UserNote::PoolPlace;
  PersonalModel(PersonalVersion version, const Options& options, std::shared_ptr<UserStore> store);
  static Status check_observations(std::span<const UserObservation> observations);
  // What a list is made from: copies, so that making it needs no lock.
  struct Ranking {
    std::vector<float> weights{};
    std::optional<UserWeights> factor{};
    std::optional<std::vector<ScoredItem>> best{};  // of the cache
    std::optional<Hash128> key{};                   // under which the best are to be kept
    Random random;
    std::string version{};
  };
  // `k`: of a list of all items; 0: of other ones.
  Ranking rank(uint64_t user, size_t k) REQUIRES(mutex_);
  TopK rank(uint64_t user, Ranking ranking, const ItemRows& rows, const std::vector<size_t>* candidates, size_t k);
  // Claims the items of a call for a change.
  Status claim_items(const ComputedRows& rows, std::span<const size_t> places, UserChange& change) REQUIRES(mutex_);
  void release_items(const UserChange& change) REQUIRES(mutex_);
  Status count_items() REQUIRES(mutex_);
  void stop_using(std::span<const UserObservation> observations) REQUIRES(mutex_);
  void drop_features() REQUIRES(mutex_);
  bool is_served(const ComputedRows& rows) const REQUIRES(mutex_) { return weights_->version().computed == rows.by; }
  // By the version that is served, which may have been swapped in since the rows were computed: these, or `made`, of
  // known items; null: one of them is not known.
  const ComputedRows* served_rows(const ComputedRows& rows, ComputedRows& made) const REQUIRES(mutex_);
  // The user is in memory then, or unknown.
  Status load(uint64_t user) REQUIRES(mutex_) { return memory_ == nullptr ? Status() : memory_->load(user); }
  bool is_known(uint64_t user) const REQUIRES(mutex_) { return memory_ == nullptr || memory_->is_known(user); }
  // No change of the user waits, and none of those that bring observations must.
  bool may_observe(uint64_t user) const REQUIRES(mutex_) {
    return memory_ == nullptr || (memory_->is_known(user) && !memory_->is_over());
  }
  size_t count_users() const REQUIRES(mutex_) { return memory_ == nullptr ? users_.users() : memory_->users(); }
  // A WeightTable refers to these, and reads them while its caller holds the mutex.
  const ObservationTable& users_table() const { return users_; }
  // A step of a change; what it puts into `at_once` is called when the mutex is free.
  using Step = std::function<Status(Done& at_once)>;
  Status carry_out(const Step& step) REQUIRES(mutex_);
  // Carries it out when the user is known (user_memory.h). Then `done` gets its error, or, after `refused()`, why it
  // never is.
  Status carry_out_later(
      uint64_t user, const Done& done, Step step, std::function<void()> refused = [] {}) REQUIRES(mutex_);
  Status check_limits(const UserChange& change) const REQUIRES(mutex_);
  // Of values that count.
  ValueRange value_range() const REQUIRES(mutex_);
  Status submit(UserChange change, uint64_t query) REQUIRES(mutex_);
  Status record(UserChange change, uint64_t query, Done& at_once) REQUIRES(mutex_);
  Status append(std::span<const std::byte> record, UserChange change, Done& at_once) REQUIRES(mutex_);
  UserDigest digest_at(const ObservationTable::User& user) const;
  // With what is on its way to the disk.
  uint64_t last_generation(uint64_t user) const REQUIRES(mutex_);
  void apply(const UserChange& change, bool is_live) REQUIRES(mutex_);
  // `weights`: those before the observation came.
  void record_loss(uint32_t place, size_t index, std::span<const float> weights) REQUIRES(mutex_);
  void add_to_pool(const ObservationTable::User& user, size_t index) REQUIRES(mutex_);
  Status prepare(WeightTable& next) REQUIRES(swap_mutex_);
  void prepare_places(WeightTable& next, bool again) REQUIRES(swap_mutex_);
  // Errors: as the store's.
  Result<VersionComparison> compare(WeightTable& next) REQUIRES(swap_mutex_);
  // Errors: why the version is not to be taken.
  static Status judge(const PersonalVersion& version, const VersionComparison& comparison);
  // A copy; nullopt: the place is empty.
  std::optional<ObservationTable::User> user_at(size_t place);

  bool on_begin(const LogContents& contents) override;
  Status on_snapshot(std::span<const std::byte> piece) override;
  Status on_record(uint64_t number, std::span<const std::byte> record) override;
  void on_written(uint64_t first, uint64_t last, const Status& status) override;
  void on_snapshot_begin() override;
  Result<bool> next_piece(std::vector<std::byte>& piece) override;
  Status read_stored_pieces() REQUIRES(mutex_);
  void on_snapshot_end(uint64_t number, const Status& status) override;

  const Options options_;
  std::unique_ptr<Storage> storage_;  // of the log
  Mutex mutex_;
  Random random_ GUARDED_BY(mutex_);
  ObservationTable users_ GUARDED_BY(mutex_);
  std::unique_ptr<UserMemory> memory_ PT_GUARDED_BY(mutex_);  // null: all users are in memory
  Status open_status_ GUARDED_BY(mutex_);                     // of the store, while the log is read
  std::optional<uint64_t> stored_number_
      GUARDED_BY(mutex_);  // records up to this one are in the store already; nullopt: it was empty
  bool is_open_ GUARDED_BY(mutex_) = false;
  std::unique_ptr<WeightTable> weights_ GUARDED_BY(mutex_);  // served; replaced by the holder of swap_mutex_ only
  WeightTable* next_ GUARDED_BY(mutex_) = nullptr;           // being prepared
  KnownItems known_items_ GUARDED_BY(mutex_);
  ListCache lists_ GUARDED_BY(mutex_);
  uint64_t cached_lists_ GUARDED_BY(mutex_) = 0;
  bool makes_version_ GUARDED_BY(mutex_) = false;  // from begin_version() to end_version()
  bool counts_items_ GUARDED_BY(mutex_) = false;   // users' observations of them: from open() on, where inputs are kept
  std::vector<uint64_t> left_items_ GUARDED_BY(mutex_);  // whose features are to be dropped
  Losses losses_ GUARDED_BY(mutex_);
  DrawnPlaces drawn_ GUARDED_BY(mutex_);
  std::deque<PoolPlace> pool_ GUARDED_BY(mutex_);  // withheld from trainers
  uint64_t outside_ GUARDED_BY(mutex_) = 0;        // observations beyond value_range() when they came
  uint64_t last_number_ GUARDED_BY(mutex_) = 0;    // of the records that count
  WaitingChanges waiting_ GUARDED_BY(mutex_);
  uint64_t observations_since_snapshot_ GUARDED_BY(mutex_) = 0;
  uint64_t snapshots_ GUARDED_BY(mutex_) = 0;
  size_t next_place_ GUARDED_BY(mutex_) = 0;
  size_t next_item_ GUARDED_BY(mutex_) = 0;
  UserMemory::Cursor next_stored_ GUARDED_BY(mutex_);
  std::deque<std::vector<std::byte>> stored_pieces_ GUARDED_BY(mutex_);

  Mutex swap_mutex_;  // taken before mutex_

  std::unique_ptr<RecordLog> log_;  // ends first; not guarded
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PERSONAL_SERVICE_PERSONAL_MODEL_H_
