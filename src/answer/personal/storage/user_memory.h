// UserMemory: which users of a personal model are in memory. Those that are used stay, within a limit of bytes (CLOCK);
// all others are values of a UserStore, with their observations and weights.
//
// A thread that needs a user first brings it into memory. A read does so on its own thread. A change waits here, and a
// thread of this class reads its user. While changes are on their way to the log, their user is pinned. One thread at a
// time reads a user, and nothing changes a user that is not in memory: so what was read is what the user is.
//
// Where memory and what is on its way to the log exceed the limit, changes of all users wait until others have left.
//
// The store is no state of its own: snapshots have its users, too. It is used again after a restart if it was closed
// with the same log (UserNote), else it is cleared, and filled again while the log is read.
//
// Errors of the store: a user that cannot be read is refused (kUnavailable). While users cannot be written they stay in
// memory, and beyond the limit further ones are refused, as are changes. What was refused may be tried again.
//
// Bounded: users in memory have `bytes_max` bytes (observations, weights, an overhead), those of what is on its way to
// the log included; one change and one read may go beyond it. `waiting_max` changes wait.
//
// Threading: all functions with the model's mutex held, but for start(), stop() and close(), which are the owner's.
// load(), make_room(), scan() and prepare_next() release it meanwhile. The store is used without the mutex.
#ifndef FOLIOT_ANSWER_PERSONAL_STORAGE_USER_MEMORY_H_
#define FOLIOT_ANSWER_PERSONAL_STORAGE_USER_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "answer/personal/storage/stored_user.h"
#include "answer/personal/storage/weight_table.h"
#include "answer/personal/weights/observation_table.h"
#include "foundation/base/flat_map.h"
#include "foundation/base/mutex.h"
#include "foundation/base/status.h"
#include "foundation/platform/thread.h"
#include "foundation/store/log_files.h"
#include "foundation/store/user_store.h"

namespace foliot {

class UserMemory {
 public:
  struct Options {
    uint64_t bytes_max = 0;
    size_t waiting_max = 65536;
    // Of the store, on any thread. It must not call the model.
    std::function<void(const std::string&)> on_failure = [](const std::string&) {};
  };
  // What runs without the mutex after a step; may be null.
  using Answer = std::function<void()>;
  // Runs with the mutex held, when the user is in memory or known to be unknown; or with why it cannot be.
  using Step = std::function<Answer(const Status&)>;
  // In a pass over all users: first those in memory, by place, then those that the store has.
  struct Cursor {
    uint64_t pass = 0;
    std::optional<uint64_t> after{};
    bool is_at_end = false;
  };
  struct Scanned {
    std::vector<UserValue> away{};   // of users that are in the store alone
    std::vector<uint32_t> places{};  // of users in memory that the pass has not visited
  };
  struct Statistics {
    uint64_t in_memory = 0;
    uint64_t in_store = 0;  // and not in memory
    uint64_t misses = 0;    // values that were looked for in the store
    uint64_t bytes = 0;     // of users in memory
    uint64_t purges = 0;
  };

  // Mutex and users outlive it.
  UserMemory(Options options, std::shared_ptr<UserStore> store, Mutex& mutex, ObservationTable& users)
      : options_(std::move(options)), store_(std::move(store)), mutex_(mutex), users_(users) {}
  ~UserMemory() { stop(); }

  // Before the log is read: what the store was closed with, or nullopt: it is empty now. Errors: the store's.
  Result<std::optional<UserNote>> begin(const LogContents& contents);
  // Nothing is in it. Before start().
  Status clear() REQUIRES(mutex_);
  Status start();
  // Changes that wait are refused from here on.
  void stop();
  // When the log is closed, after stop(): writes all that is only in memory, and the note, whose users are filled in.
  // After an error, or where a value could not be read, the store is filled anew after a restart.
  Status close(UserNote note);

  // The tables of weights: `served` by the number that values have for it, nullopt: a new one.
  void serve(WeightTable& served, std::optional<uint64_t> number = std::nullopt);
  // Another one is made beside it; and then it is served, or not.
  void begin_next(WeightTable& next);
  void end_next(bool is_served);
  uint64_t table() const {
    mutex_.assert_held();
    return served_.number;
  }

  // For a read: the user is in memory, or unknown. Errors: kUnavailable.
  Status load(uint64_t user);
  // The same is so already.
  bool is_known(uint64_t user) const;
  // Changes that bring observations wait, also of users that are known.
  bool is_over() const {
    mutex_.assert_held();
    return used() + pins_.size() * bytes_of_each() + coming_bytes_ > options_.bytes_max;
  }
  // Carries the step out when the user is known and memory is not full; of one user, in the order of the calls. Errors,
  // and then the step is not run: kResourceExhausted, kUnavailable.
  Status wait(uint64_t user, Step step);
  // So many observations are on their way to the log, and the user stays in memory, or unknown, until unpin() with the
  // same number. REQUIRES: is_known().
  void pin(uint64_t user, size_t observations);
  void unpin(uint64_t user, size_t observations);
  // kUnavailable: no observations now, since memory is full of users that could not be written.
  Status admit();
  // Makes room, if too much is in memory, before it returns. Errors: kUnavailable if there is still too much.
  Status make_room();

  // Observations or weights at this place have changed; it may be new.
  void on_changed(uint32_t place);
  // After on_changed(): what was stored of the user is to be in no file any more.
  void on_forgotten(uint32_t place);
  // The user is gone, and the place is empty by now.
  void on_removed(uint32_t place, uint64_t user);
  // What was forgotten is removed from the store's files, in the background.
  void request_purge();

  size_t users() const {
    mutex_.assert_held();
    return users_.users() + away_;
  }
  // A pass over all users visits the places first, and then scans until the cursor is at its end. Each user is met that
  // is one all the time: if it has left its place before that was visited, it has a value.
  Cursor begin_pass() {
    mutex_.assert_held();
    return {.pass = ++passes_};
  }
  void visit(uint32_t index, const Cursor& cursor) {
    mutex_.assert_held();
    place(index).pass = cursor.pass;
  }
  // Users from the cursor on, as they are when it returns, so many with so many bytes at most; it may be none. No
  // thread writes to the store meanwhile. Errors: kUnavailable.
  static constexpr size_t kScannedBytes = 256 << 10;
  Result<Scanned> scan(Cursor& cursor, size_t count, size_t bytes_max = kScannedBytes);
  // Makes the weights of all users that are in the store alone by the next table. Errors: kUnavailable.
  Status prepare_next();
  Statistics statistics() const;

 private:
  struct Table {
    WeightTable* table = nullptr;
    uint64_t number = 0;
  };
  // Which weights a value has.
  struct Settled {
    uint64_t table = 0;
    uint32_t count = 0;
    uint64_t next_table = 0;
    uint32_t next_count = 0;
    bool operator==(const Settled&) const = default;
  };
  struct Place {
    bool was_read = false;    // since the last look
    bool is_stored = false;   // the store has a value of the user
    bool is_dirty = false;    // it is not what is in memory
    bool is_writing = false;  // it is about to be written
    uint32_t changes = 0;
    uint64_t bytes = 0;  // of observations
    uint64_t pass = 0;   // the last one that visited it
    Settled settled{};   // of the value
  };
  struct Fetch {
    bool is_begun = false;
    std::vector<Step> steps{};
  };
  struct Batch {
    struct Written {
      uint32_t place = 0;
      uint64_t user = 0;
      uint64_t first_number = 0;
      uint32_t changes = 0;
      Settled settled{};
    };
    std::vector<UserStore::Write> writes{};
    std::vector<Written> users{};
    std::vector<std::pair<uint64_t, uint64_t>> erased{};  // user, and number of the forgetting
    size_t bytes = 0;
  };

  Place& place(uint32_t index) REQUIRES(mutex_);
  uint64_t bytes_of_each() const REQUIRES(mutex_);
  // What the store has of the user does not count.
  bool is_here(uint64_t user) const REQUIRES(mutex_) { return users_.find(user) || erased_.find(user) != nullptr; }
  uint64_t used() const REQUIRES(mutex_) { return observed_bytes_ + users_.users() * bytes_of_each(); }
  // From here on users leave in the background, until no more than used_after_eviction() are in memory: so batches are
  // large.
  bool is_crowded() const REQUIRES(mutex_) { return used() > options_.bytes_max - options_.bytes_max / 4; }
  uint64_t used_after_eviction() const { return options_.bytes_max - options_.bytes_max / 4 - options_.bytes_max / 16; }
  // From here on others must leave before a user comes, and observations are refused if users cannot be written.
  bool is_full() const REQUIRES(mutex_) { return used() > options_.bytes_max - options_.bytes_max / 8; }
  Status full() const REQUIRES(mutex_);
  Settled settled(uint32_t index) const REQUIRES(mutex_);
  std::vector<std::byte> encode(uint32_t index) const REQUIRES(mutex_);
  void insert(UserValue value) REQUIRES(mutex_);
  void drop(uint32_t index) REQUIRES(mutex_);
  void recount(uint32_t index) REQUIRES(mutex_);
  void wake() REQUIRES(mutex_);

  // REQUIRES: fetches_ has the user, and this thread has begun it.
  // True: the store has a value of the user.
  Result<bool> fetch(uint64_t user) REQUIRES(mutex_);
  void end_fetch(uint64_t user, const Status& status) REQUIRES(mutex_);
  void wait_for_room() REQUIRES(mutex_);
  Status evict() REQUIRES(mutex_);
  void add_erased(Batch& batch) const REQUIRES(mutex_);
  void add(uint32_t index, Batch& batch) REQUIRES(mutex_);
  // Drops users that may go at once, and collects others to be written.
  Batch collect() REQUIRES(mutex_);
  Status write(const Batch& batch) REQUIRES(mutex_);
  void end_write(const Batch& batch, const Status& status) REQUIRES(mutex_);
  void begin_writing() REQUIRES(mutex_);
  void end_writing() REQUIRES(mutex_);
  Status on_read(const Status& status) REQUIRES(mutex_);
  Result<std::vector<UserValue>> read_next(const Cursor& cursor, size_t count, size_t bytes_max) REQUIRES(mutex_);
  // Without the lock.
  Result<std::optional<UserValue>> read_value(uint64_t user);
  Result<std::vector<UserValue>> read_values(std::optional<uint64_t> after, size_t count, size_t bytes_max);
  Status prepare_values(std::span<UserValue> values) REQUIRES(mutex_);
  void run();
  void run_purges();
  void purge() REQUIRES(mutex_);

  const Options options_;
  const std::shared_ptr<UserStore> store_;
  Mutex& mutex_;
  ObservationTable& users_;

  Table served_ GUARDED_BY(mutex_);
  Table next_ GUARDED_BY(mutex_);
  uint64_t last_table_ GUARDED_BY(mutex_) = 0;
  uint64_t start_ = 1;                            // does not change after begin()
  std::vector<Place> places_ GUARDED_BY(mutex_);  // as users_ has them
  uint32_t hand_ GUARDED_BY(mutex_) = 0;
  uint64_t observed_bytes_ GUARDED_BY(mutex_) = 0;
  uint64_t away_ GUARDED_BY(mutex_) = 0;  // users that are in the store alone
  FlatMap<uint64_t, uint32_t> pins_ GUARDED_BY(mutex_);
  uint64_t coming_bytes_ GUARDED_BY(mutex_) = 0;    // of the observations of pinned users that are on their way
  uint64_t unpinned_users_ GUARDED_BY(mutex_) = 0;  // so far
  std::map<uint64_t, Fetch> fetches_ GUARDED_BY(mutex_);
  std::deque<uint64_t> queue_ GUARDED_BY(mutex_);  // of fetches, for the thread
  size_t waiting_ GUARDED_BY(mutex_) = 0;          // steps
  FlatMap<uint64_t, uint64_t> erased_
      GUARDED_BY(mutex_);  // users whose values are to be erased; by the number of the forgetting
  uint64_t forgettings_ GUARDED_BY(mutex_) = 0;
  std::vector<uint64_t> forgotten_ GUARDED_BY(mutex_);  // that may be in the store's files
  bool is_writing_ GUARDED_BY(mutex_) = false;          // one thread at a time
  Status write_error_ GUARDED_BY(mutex_);               // of the last write
  bool is_damaged_ GUARDED_BY(mutex_) = false;          // a value could not be read
  bool wants_flush_ GUARDED_BY(mutex_) = false;         // so that a store that is damaged counts as not closed
  bool has_work_ GUARDED_BY(mutex_) = false;
  bool wants_purge_ GUARDED_BY(mutex_) = false;
  bool is_stopping_ GUARDED_BY(mutex_) = false;
  uint64_t passes_ GUARDED_BY(mutex_) = 0;
  uint64_t misses_ GUARDED_BY(mutex_) = 0;
  uint64_t purges_ GUARDED_BY(mutex_) = 0;
  Condition fetched_;
  Condition written_;
  Condition unpinned_;
  Condition work_;
  Condition purge_;
  Thread thread_;
  Thread purger_;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PERSONAL_STORAGE_USER_MEMORY_H_
