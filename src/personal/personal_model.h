// PersonalModel: a model with weights for each user, which learns from each observation, from the next
// request on, and loses none (Velox, chapter 2):
//
//   prediction(user, item) = weights(user) . features(item)
//
// Observations are records of a log (store/log.h). One counts once it is on disk, and is then answered; with
// `durability_is_async` it is answered at once, and a crash may lose what came in the last moments. State
// after a restart is the last snapshot and the rest of the log. Ids make retries harmless: of one user, each
// id counts once.
//
// Bounded: what waits for the disk (Log), observations of a user, users, matrices of users. State is
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
#include <span>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "personal/exploration.h"
#include "personal/item_table.h"
#include "personal/top_k.h"
#include "personal/user_table.h"
#include "store/log.h"
#include "store/storage.h"

namespace foliot {

class PersonalModel : private LogReader, private LogSink, private SnapshotSource {
 public:
  static constexpr size_t kObservationsPerCallMax = 1000;
  static constexpr size_t kPlacesMax = 10000;  // k of top_k()

  struct Options {
    UserTable::Options table{};
    Exploration exploration{};
    bool durability_is_async = false;
    float value_min = -1e6F;  // values are clipped to this range
    float value_max = 1e6F;
    size_t observations_per_user_max = 4096;
    size_t users_max = 10'000'000;
    uint64_t observations_per_snapshot = 1'000'000;
    GroupCommit::Limits log{};
    uint64_t seed = 0;  // random in a server
  };
  // On the log's thread, or on the caller's before the call returns. It must not block.
  using Done = std::function<void(const Status&)>;

  // Reads the state. Errors: kInvalidArgument naming the option; as Log::open().
  static Result<std::unique_ptr<PersonalModel>> open(std::unique_ptr<Storage> storage,
                                                     std::shared_ptr<const ItemTable> items, const Options& options);
  // Writes what waits.
  ~PersonalModel() override;

  // Errors: kNotFound naming the item.
  Result<float> predict(uint64_t user, uint64_t item);
  // `items` are the candidates; empty: all. Errors: kNotFound naming an item, kInvalidArgument
  // for k = 0 or above kPlacesMax and for an item that is named twice.
  Result<std::vector<ScoredItem>> top_k(uint64_t user, std::span<const uint64_t> items, size_t k);

  // Observations of one user, all or none of them. After an error `done` is not called; otherwise once, with an
  // error if they could not be written: then they may be there after a restart or not, and may be sent again
  // with the same ids. Errors: kNotFound naming the item; kInvalidArgument for a value that is not finite,
  // an empty list or one above kObservationsPerCallMax; kResourceExhausted over a limit.
  Status observe(uint64_t user, std::span<const UserObservation> observations, Done done);
  // The user is unknown then. From the files it is gone once snapshots have replaced those written so far.
  Status forget(uint64_t user, Done done);
  // Begins one as soon as possible.
  void request_snapshot() { log_->request_snapshot(); }

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
  PersonalModel(std::shared_ptr<const ItemTable> items, const Options& options)
      : options_(options), random_(options.seed), table_(std::move(items), options.table) {}
  Status check_observations(std::span<const UserObservation> observations) const;
  Status append(std::span<const std::byte> record, Change change, std::unique_lock<std::mutex>& lock);
  void apply(const Change& change);

  Status on_snapshot(std::span<const std::byte> piece) override;
  Status on_record(uint64_t number, std::span<const std::byte> record) override;
  void on_written(uint64_t first, uint64_t last, const Status& status) override;
  void on_snapshot_begin() override { next_place_ = 0; }
  bool next_piece(std::vector<std::byte>& piece) override;
  void on_snapshot_end(uint64_t number, const Status& status) override;

  const Options options_;
  std::mutex mutex_;
  Random random_;  // guarded by mutex_, as what follows
  UserTable table_;
  std::deque<Change> waiting_;
  uint64_t observations_since_snapshot_ = 0;
  uint64_t snapshots_ = 0;
  size_t next_place_ = 0;
  std::unique_ptr<Log> log_;  // ends first; not guarded
};

}  // namespace foliot

#endif  // FOLIOT_PERSONAL_PERSONAL_MODEL_H_
