#include "edge/jobs/sqlite_job_store.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <utility>

#include "edge/jobs/stored_job.h"

namespace foliot {
namespace {

constexpr int64_t kForm = 1;                  // of the table; a newer program raises it
constexpr int64_t kApplication = 0x464a4f42;  // "FJOB"

struct FinalizeJobStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using JobStatement = std::unique_ptr<sqlite3_stmt, FinalizeJobStatement>;

JobStatement prepare_statement(sqlite3* database, const char* text) {
  sqlite3_stmt* statement = nullptr;
  sqlite3_prepare_v2(database, text, -1, &statement, nullptr);
  return JobStatement(statement);
}

std::string text_of(sqlite3_stmt* statement, int column) {
  const unsigned char* const text = sqlite3_column_text(statement, column);
  return text == nullptr ? "" : std::string(reinterpret_cast<const char*>(text));
}

}  // namespace

void SqliteJobStore::Close::operator()(sqlite3* database) const { sqlite3_close(database); }

Status SqliteJobStore::failure(const char* what) const {
  const int code = sqlite3_errcode(database_.get()) & 0xff;
  const std::string text = fmt::format("{}: cannot {}: {}", file_, what, sqlite3_errmsg(database_.get()));
  switch (code) {
    case SQLITE_FULL:
    case SQLITE_IOERR: return Status::resource_exhausted(text + "; free space on its disk");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Status::already_exists(text + "; another process uses it: give each server a folder of its own (--jobs)");
    case SQLITE_CORRUPT:
      return Status::internal(text +
                              "; restore it from a backup, or move it away: the jobs that it has are lost then, "
                              "and what they wrote stays");
    case SQLITE_NOTADB: return Status::invalid_argument(text + "; move it away, or give --jobs another folder");
    default: return Status::internal(text);
  }
}

Status SqliteJobStore::run(const char* statement) {
  const int code = sqlite3_exec(database_.get(), statement, nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? Status() : failure("be used");
}

Result<int64_t> SqliteJobStore::number(const char* query) {
  const JobStatement statement = prepare_statement(database_.get(), query);
  if (statement == nullptr || sqlite3_step(statement.get()) != SQLITE_ROW) return failure("be read");
  return sqlite3_column_int64(statement.get(), 0);
}

Result<std::unique_ptr<SqliteJobStore>> SqliteJobStore::open(const std::filesystem::path& file,
                                                             const Options& options) {
  sqlite3* database = nullptr;
  const int code = sqlite3_open(file.c_str(), &database);
  std::unique_ptr<SqliteJobStore> store(new SqliteJobStore(file.string(), database, options.on_damaged));
  if (code != SQLITE_OK) return store->failure("be opened");
  FOLIOT_RETURN_IF_ERROR(store->prepare_file(options));
  return store;
}

Status SqliteJobStore::prepare_file(const Options& options) {
  // Exclusive from here on.
  FOLIOT_RETURN_IF_ERROR(run("PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = FULL; BEGIN EXCLUSIVE; COMMIT"));
  FOLIOT_ASSIGN_OR_RETURN(const int64_t tables, number("SELECT count(*) FROM sqlite_master"));
  // One that is there is not written to: the disk may be full.
  FOLIOT_RETURN_IF_ERROR(tables == 0 ? make_table() : check_form());
  if (options.pages_max > 0) return run(fmt::format("PRAGMA max_page_count = {}", options.pages_max).c_str());
  return Status();
}

Status SqliteJobStore::make_table() {
  return run(fmt::format("BEGIN; CREATE TABLE jobs (id TEXT PRIMARY KEY, number INTEGER, job TEXT);"
                         "PRAGMA user_version = {}; PRAGMA application_id = {}; COMMIT",
                         kForm, kApplication)
                 .c_str());
}

Status SqliteJobStore::check_form() {
  FOLIOT_ASSIGN_OR_RETURN(const int64_t application, number("PRAGMA application_id"));
  if (application != kApplication) {
    return Status::invalid_argument(
        fmt::format("{}: is a database of another program; give --jobs another folder", file_));
  }
  FOLIOT_ASSIGN_OR_RETURN(const int64_t form, number("PRAGMA user_version"));
  if (form > kForm) {
    return Status::invalid_argument(fmt::format(
        "{}: was written by a newer Foliot, in form {}; this one reads up to form {}: use the newer one, or "
        "give --jobs another folder",
        file_, form, kForm));
  }
  const JobStatement statement = prepare_statement(database_.get(), "PRAGMA quick_check(1)");
  if (statement == nullptr || sqlite3_step(statement.get()) != SQLITE_ROW) return failure("be checked");
  const std::string finding = text_of(statement.get(), 0);
  if (finding == "ok") return Status();
  return Status::internal(fmt::format(
      "{}: is damaged: {}; restore it from a backup, or move it away: the jobs that it has are lost then, and "
      "what they wrote stays",
      file_, finding));
}

Result<std::vector<Job>> SqliteJobStore::read() {
  const JobStatement statement = prepare_statement(database_.get(), "SELECT id, job FROM jobs ORDER BY number");
  if (statement == nullptr) return failure("be read");
  std::vector<Job> all;
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(statement.get())) == SQLITE_ROW) {
    Result<Job> job = stored_job(text_of(statement.get(), 0), text_of(statement.get(), 1));
    if (job.ok()) {
      all.push_back(std::move(job).value());
    } else {
      on_damaged_(fmt::format("{}: {}", file_, job.status().message()));
    }
  }
  return code == SQLITE_DONE ? Result(std::move(all)) : failure("be read");
}

Status SqliteJobStore::change(const char* text, const std::string& first, int64_t second, const std::string& third) {
  const JobStatement statement = prepare_statement(database_.get(), text);
  if (statement == nullptr) return failure("be written");
  sqlite3_bind_text(statement.get(), 1, first.data(), static_cast<int>(first.size()), nullptr);
  if (sqlite3_bind_parameter_count(statement.get()) == 3) {
    sqlite3_bind_int64(statement.get(), 2, second);
    sqlite3_bind_text(statement.get(), 3, third.data(), static_cast<int>(third.size()), nullptr);
  }
  return sqlite3_step(statement.get()) == SQLITE_DONE ? Status() : failure("be written");
}

Status SqliteJobStore::put(const Job& job) {
  return change("REPLACE INTO jobs VALUES (?1, ?2, ?3)", job.id, static_cast<int64_t>(job.number), to_json(job));
}

Status SqliteJobStore::remove(const std::string& id) { return change("DELETE FROM jobs WHERE id = ?1", id, 0, ""); }

}  // namespace foliot
