// SqliteJobStore: jobs in a file of SQLite, which one process uses. A change is one transaction, which lasts
// once it has returned (synchronous = FULL).
//
// The file has the version of its form (user_version) and a mark of its kind (application_id).
#ifndef FOLIOT_EDGE_JOBS_SQLITE_JOB_STORE_H_
#define FOLIOT_EDGE_JOBS_SQLITE_JOB_STORE_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "edge/jobs/job_store.h"

struct sqlite3;

namespace foliot {

class SqliteJobStore final : public JobStore {
 public:
  struct Options {
    uint32_t pages_max = 0;  // of 4 KiB, for tests of a full disk; 0: no limit
    // What read() leaves out, since it is no job, and why.
    std::function<void(const std::string& what)> on_damaged = [](const std::string&) {};
  };
  // Makes the file if there is none. Errors name the file and what to do: kAlreadyExists if another process uses it,
  // kInvalidArgument if it is another kind of file or of a newer version, kInternal if it is damaged,
  // kResourceExhausted if the disk is full.
  static Result<std::unique_ptr<SqliteJobStore>> open(const std::filesystem::path& file, const Options& options);
  static Result<std::unique_ptr<SqliteJobStore>> open(const std::filesystem::path& file) { return open(file, {}); }

  Result<std::vector<Job>> read() override;
  Status put(const Job& job) override;
  Status remove(const std::string& id) override;

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  SqliteJobStore(std::string file, sqlite3* database, std::function<void(const std::string&)> on_damaged)
      : file_(std::move(file)), database_(database), on_damaged_(std::move(on_damaged)) {}
  Status prepare_file(const Options& options);
  Status make_table();
  Status check_form();
  Status run(const char* statement);
  Result<int64_t> number(const char* query);
  Status change(const char* statement, const std::string& first, int64_t second, const std::string& third);
  Status failure(const char* what) const;

  const std::string file_;
  const std::unique_ptr<sqlite3, Close> database_;
  const std::function<void(const std::string&)> on_damaged_;
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_JOBS_SQLITE_JOB_STORE_H_
