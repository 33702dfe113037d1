// PersonalModel: a model with weights for each user, which learns from each observation, from the next
// request on, and loses none (Velox, chapter 2):
//
//   prediction(user, item) = weights(user) . features(item)
//
// Observations are records of a log (store/record_log.h). One counts once it is on disk, and is then answered; with
// `durability_is_async` it is answered at once, and a crash may lose what came in the last moments. State
// after a restart is the last snapshot and the rest of the log. Ids make retries harmless: of one user, each
// id counts once.
//
// A version (personal_version.h) is served until another one is swapped in. Users keep their observations, so none
// is lost or counted twice; their weights by the new version are made beside those that are served.
//
// Losses are squared errors of predictions by the weights that were last read, or that are at most
// kUnsettledMax observations old. They begin anew with each version and each start of the process.
//
// Bounded: what waits for the disk (RecordLog), observations of a user, users, matrices of users. State is
// in memory: some 24 bytes for each observation, and 4 d for the weights of each user.
//
// Threading: any. Reads wait for each other for some microseconds, never for the disk.
#ifndef FOLIOT_PERSONAL_PERSONAL_MODEL_H_
#define FOLIOT_PERSONAL_PERSONAL_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "personal/drawn_places.h"
#include "personal/drift_detector.h"
#include "personal/exploration.h"
#include "personal/observation_table.h"
#include "personal/personal_statistics.h"
#include "personal/personal_version.h"
#include "personal/top_k.h"
#include "personal/user_records.h"
#include "personal/weight_table.h"
#include "store/record_log.h"
#include "store/storage.h"

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

class PersonalModel : private LogReader, private LogSink, private SnapshotSource {
 public:
  static constexpr size_t kObservationsPerCallMax = 1000;
  static constexpr size_t kPlacesMax = 10000;  // k of top_k()
  static constexpr size_t kUnsettledMax = 16;
  // Versions are compared on the last observations of the pool, if there are at least so many.
  static constexpr size_t kPoolMax = 1024;
  static constexpr size_t kPoolMin = 30;
  enum class PoolCheck { kNotWorse, kNone };

  struct Options {
    WeightTable::Options table{};
    Exploration exploration{};
    bool durability_is_async = false;
    float value_min = -1e6F;  // values are clipped to this range
    float value_max = 1e6F;
    size_t observations_per_user_max = 4096;
    size_t users_max = 10'000'000;
    uint64_t observations_per_snapshot = 1'000'000;
    RetrainLimits retrain{};
    GroupCommit::Limits log{};
    uint64_t seed = 0;  // random in a server
  };
  // On the log's thread, or on the caller's before the call returns. It must not block.
  using Done = std::function<void(const Status&)>;

  // Reads the state. Errors: kInvalidArgument naming the option or what is wrong with the version; as its log.
  static Result<std::unique_ptr<PersonalModel>> open(std::unique_ptr<Storage> storage, PersonalVersion version,
                                                     const Options& options);
  // Writes what waits.
  ~PersonalModel() override;

  // Errors: kNotFound naming the item.
  Result<UserPrediction> predict(uint64_t user, uint64_t item);
  // `items` are the candidates; empty: all. Errors: kNotFound naming an item, kInvalidArgument
  // for k = 0 or above kPlacesMax and for an item that is named twice.
  Result<TopK> top_k(uint64_t user, std::span<const uint64_t> items, size_t k);

  // Observations of one user, all or none of them. After an error `done` is not called; otherwise once, with an
  // error if they could not be written: then they may be there after a restart or not, and may be sent again
  // with the same ids. Errors: kNotFound naming the item; kInvalidArgument for a value that is not finite,
  // an empty list or one above kObservationsPerCallMax; kResourceExhausted over a limit. `query`: of the answer of
  // top_k() that they follow from: those of items that were drawn in it become part of the validation pool; 0: none.
  Status observe(uint64_t user, std::span<const UserObservation> observations, Done done, uint64_t query = 0);
  // The user is unknown then. From the files it is gone once snapshots have replaced those written so far.
  Status forget(uint64_t user, Done done);
  // Begins one as soon as possible.
  void request_snapshot() { log_->request_snapshot(); }

  // Serves this version from here on. Takes as long as making the weights of all users anew, while calls are served
  // by the version before. Errors, after which that one is still served: kInvalidArgument naming what is wrong with
  // the version, that it was trained on another log, and, with kNotWorse, that it was rolled back or that its loss on
  // the validation pool is higher.
  Status swap(PersonalVersion version, PoolCheck check = PoolCheck::kNotWorse);
  // Serves the version before the last swap again. Errors: kNotFound if there is none.
  Status rollback();
  std::string version();
  PersonalStatistics statistics();
  // Of a user, since the version is served; nullopt: the user is unknown.
  std::optional<RunningLoss> loss(uint64_t user);

  size_t users();
  std::vector<UserObservation> observations(uint64_t user);
  // What was cut off from the log when it was opened.
  uint64_t torn_bytes() const { return log_->torn_bytes(); }
  uint64_t snapshots();

 private:
  // Waits for the disk.
  struct Change {
    uint64_t number = 0;
    uint64_t user = 0;
    bool forgets = false;
    std::vector<UserObservation> observations{};
    Done done{};
  };
  // Losses since a version is served.
  struct Losses {
    RunningLoss overall{};
    RunningLoss pool{};
    DriftDetector drift{};
  };
  // An observation of the validation pool.
  struct PoolPlace {
    uint64_t user = 0;
    uint64_t first_number = 0;
    size_t index = 0;
  };
  PersonalModel(PersonalVersion version, const Options& options)
      : options_(options),
        random_(options.seed),
        weights_(std::make_unique<WeightTable>(users_, std::move(version), options.table)) {}
  static Status check_observations(const ItemTable& items, std::span<const UserObservation> observations);
  Status append(std::span<const std::byte> record, Change change, std::unique_lock<std::mutex>& lock);
  void apply(const Change& change, bool is_live);
  void record_loss(uint32_t place, size_t index);
  void add_to_pool(const ObservationTable::User& user, size_t index);
  Status take(PersonalVersion version, PoolCheck check);
  void prepare(WeightTable& next);
  Status compare_on_pool(const WeightTable& next);
  // A copy; nullopt: the place is empty.
  std::optional<ObservationTable::User> user_at(size_t place);

  Status on_snapshot(std::span<const std::byte> piece) override;
  Status on_record(uint64_t number, std::span<const std::byte> record) override;
  void on_written(uint64_t first, uint64_t last, const Status& status) override;
  void on_snapshot_begin() override { next_place_ = 0; }
  bool next_piece(std::vector<std::byte>& piece) override;
  void on_snapshot_end(uint64_t number, const Status& status) override;

  const Options options_;
  std::mutex mutex_;
  Random random_;  // guarded by mutex_, as what follows
  ObservationTable users_;
  std::unique_ptr<WeightTable> weights_;  // served; replaced by the holder of swap_mutex_ only
  WeightTable* next_ = nullptr;           // being prepared
  Losses losses_;
  DrawnPlaces drawn_;
  std::deque<PoolPlace> pool_;
  uint64_t last_number_ = 0;  // of the records that count
  std::deque<Change> waiting_;
  uint64_t observations_since_snapshot_ = 0;
  uint64_t snapshots_ = 0;
  size_t next_place_ = 0;

  std::mutex swap_mutex_;                    // taken before mutex_
  std::optional<PersonalVersion> previous_;  // guarded by swap_mutex_, as what follows
  std::string rolled_back_;

  std::unique_ptr<RecordLog> log_;  // ends first; not guarded
};

}  // namespace foliot

#endif  // FOLIOT_PERSONAL_PERSONAL_MODEL_H_
