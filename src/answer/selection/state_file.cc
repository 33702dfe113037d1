#include "answer/selection/state_file.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <string_view>
#include <utility>

namespace foliot {
namespace {

struct FinalizeStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using SqlStatement = std::unique_ptr<sqlite3_stmt, FinalizeStatement>;

SqlStatement prepare(sqlite3* database, const char* text) {
  sqlite3_stmt* statement = nullptr;
  sqlite3_prepare_v2(database, text, -1, &statement, nullptr);
  return SqlStatement(statement);
}

// The text outlives the next step.
void bind_bytes(sqlite3_stmt* statement, int place, const std::string& bytes) {
  sqlite3_bind_blob(statement, place, bytes.data(), static_cast<int>(bytes.size()), nullptr);
}

std::string column_bytes(sqlite3_stmt* statement, int column) {
  const void* const bytes = sqlite3_column_blob(statement, column);
  const auto size = static_cast<size_t>(sqlite3_column_bytes(statement, column));
  return bytes == nullptr ? "" : std::string(static_cast<const char*>(bytes), size);
}

}  // namespace

void StateFile::Close::operator()(sqlite3* database) const { sqlite3_close(database); }

Status StateFile::error(const char* what) const {
  return Status::internal(fmt::format("{}: cannot {}: {}", file_, what, sqlite3_errmsg(database_.get())));
}

Status StateFile::run(const char* statement) {
  const int code = sqlite3_exec(database_.get(), statement, nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? Status() : error("write");
}

Result<StateFile> StateFile::open(const std::filesystem::path& file) {
  sqlite3* database = nullptr;
  const int code = sqlite3_open(file.c_str(), &database);
  StateFile state(file.string(), database);
  // Exclusive from here on: two servers would overwrite each other.
  Status status = code == SQLITE_OK ? state.run(
                                          "PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = NORMAL;"
                                          "CREATE TABLE IF NOT EXISTS learned (application BLOB, context BLOB, "
                                          "learns_as BLOB, state BLOB, PRIMARY KEY (application, context));"
                                          "BEGIN EXCLUSIVE; COMMIT")
                                    : state.error("open");
  if (status.ok()) return state;
  return Status::invalid_argument(
      fmt::format("{}; give --state a file that this server alone writes, or a new one", status.message()));
}

Result<std::vector<StateFile::Learned>> StateFile::read() {
  std::vector<Learned> all;
  const SqlStatement statement =
      prepare(database_.get(), "SELECT application, context, learns_as, state FROM learned ORDER BY rowid");
  if (statement == nullptr) return error("read");
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(statement.get())) == SQLITE_ROW) {
    all.push_back({column_bytes(statement.get(), 0),
                   column_bytes(statement.get(), 2),
                   {column_bytes(statement.get(), 1), column_bytes(statement.get(), 3)}});
  }
  if (code != SQLITE_DONE) return error("read");
  return all;
}

Status StateFile::write(std::span<const Learned> changes) {
  if (changes.empty()) return Status();
  FOLIOT_RETURN_IF_ERROR(run("BEGIN"));
  const SqlStatement replace = prepare(database_.get(), "REPLACE INTO learned VALUES (?1, ?2, ?3, ?4)");
  const SqlStatement remove = prepare(database_.get(), "DELETE FROM learned WHERE application = ?1 AND context = ?2");
  Status status = replace == nullptr || remove == nullptr ? error("write") : Status();
  for (const Learned& change : changes) {
    if (!status.ok()) break;
    sqlite3_stmt* const statement = change.learned.state ? replace.get() : remove.get();
    bind_bytes(statement, 1, change.application);
    bind_bytes(statement, 2, change.learned.context);
    if (change.learned.state) {
      bind_bytes(statement, 3, change.learns_as);
      bind_bytes(statement, 4, *change.learned.state);
    }
    if (sqlite3_step(statement) != SQLITE_DONE) status = error("write");
    sqlite3_reset(statement);
  }
  if (status.ok()) status = run("COMMIT");
  if (!status.ok()) sqlite3_exec(database_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
  return status;
}

}  // namespace foliot
