#include "runtime/store/sqlite_store.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

namespace paceline::store {
namespace {

constexpr int kFormat = 1;             // Of the table.
constexpr int kBusyMilliseconds = 50;  // Somebody else looks into the file.

/// What is wrong, and where; a damaged file is of the kind `invalid`.
Error error_of(sqlite3* database, const std::filesystem::path& file) {
  const int code = database ? sqlite3_errcode(database) & 0xff : SQLITE_NOMEM;
  const bool damaged = code == SQLITE_CORRUPT || code == SQLITE_NOTADB;
  return Error{damaged ? ErrorKind::invalid : ErrorKind::internal,
               file.string() + ": " + (database ? sqlite3_errmsg(database) : "out of memory")};
}

struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

Statement prepare(sqlite3* database, const char* sql) {
  sqlite3_stmt* statement = nullptr;
  sqlite3_prepare_v2(database, sql, -1, &statement, nullptr);
  return Statement(statement);
}

void bind_text(sqlite3_stmt* statement, int place, std::string_view text) {
  sqlite3_bind_text(statement, place, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
}

std::string text_at(sqlite3_stmt* row, int column) {
  const auto* const text = reinterpret_cast<const char*>(sqlite3_column_text(row, column));
  return text ? std::string(text, static_cast<std::size_t>(sqlite3_column_bytes(row, column))) : "";
}

bool run(sqlite3* database, const char* sql) {
  return sqlite3_exec(database, sql, nullptr, nullptr, nullptr) == SQLITE_OK;
}

/// nullopt: it is no database, or cannot be read.
std::optional<int> format_of(sqlite3* database) {
  const auto asks = prepare(database, "PRAGMA user_version");
  if (!asks || sqlite3_step(asks.get()) != SQLITE_ROW) return std::nullopt;
  return sqlite3_column_int(asks.get(), 0);
}

bool write_all(sqlite3* database, const StateStore::Texts& texts) {
  const auto put = prepare(database, "INSERT OR REPLACE INTO state (key, text) VALUES (?1, ?2)");
  const auto erase = prepare(database, "DELETE FROM state WHERE key = ?1");
  if (!put || !erase) return false;
  for (const auto& [key, text] : texts) {
    sqlite3_stmt* const statement = text.empty() ? erase.get() : put.get();
    sqlite3_reset(statement);
    bind_text(statement, 1, key);
    if (!text.empty()) bind_text(statement, 2, text);
    if (sqlite3_step(statement) != SQLITE_DONE) return false;
  }
  return true;
}

}  // namespace

/// Closed once its last statement is gone.
void SqliteStore::Close::operator()(sqlite3* database) const { sqlite3_close_v2(database); }

SqliteStore::SqliteStore(std::filesystem::path file) : file_(std::move(file)) {}
SqliteStore::~SqliteStore() = default;

Result<SqliteStore::Database> SqliteStore::open_file() const {
  // What SQLite makes everybody may read.
  if (const int made = ::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600); made >= 0) ::close(made);
  sqlite3* opened = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  const int code = sqlite3_open_v2(file_.c_str(), &opened, flags, nullptr);
  Database database(opened);
  if (code != SQLITE_OK) return tl::unexpected(error_of(opened, file_));
  sqlite3_busy_timeout(opened, kBusyMilliseconds);
  const auto format = format_of(opened);
  if (!format) return tl::unexpected(error_of(opened, file_));
  if (*format != 0 && *format != kFormat)
    return fail(ErrorKind::invalid, file_.string() + ": of another version of Paceline");
  // A write-ahead log is whole when a process is killed; only a power failure may take what was written last.
  const std::string made =
      "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
      "CREATE TABLE IF NOT EXISTS state (key TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;"
      "PRAGMA user_version = " +
      std::to_string(kFormat);
  if (!run(opened, made.c_str())) return tl::unexpected(error_of(opened, file_));
  return database;
}

void SqliteStore::put_aside(const std::string& why) {
  damage_ = why;
  database_.reset();
  std::error_code ignored;
  for (const char* const part : {"", "-wal", "-shm"})
    std::filesystem::rename(file_.string() + part, file_.string() + ".damaged" + part, ignored);
}

Result<void> SqliteStore::open() {
  if (database_) return {};
  auto opened = open_file();
  if (!opened && opened.error().kind == ErrorKind::invalid) {
    put_aside(opened.error().text);
    opened = open_file();
  }
  if (!opened) return tl::unexpected(opened.error());
  database_ = *std::move(opened);
  return {};
}

Result<StateStore::Texts> SqliteStore::read(const std::string& prefix) {
  std::error_code ignored;
  if (!database_ && !std::filesystem::exists(file_, ignored)) return Texts{};
  PACELINE_TRY(open());
  const auto asks = prepare(database_.get(), "SELECT key, text FROM state WHERE substr(key, 1, length(?1)) = ?1");
  if (asks) bind_text(asks.get(), 1, prefix);
  Texts found;
  int code = asks ? sqlite3_step(asks.get()) : SQLITE_ERROR;
  for (; code == SQLITE_ROW; code = sqlite3_step(asks.get())) found[text_at(asks.get(), 0)] = text_at(asks.get(), 1);
  if (code == SQLITE_DONE) return found;
  const Error error = error_of(database_.get(), file_);
  if (error.kind != ErrorKind::invalid) return tl::unexpected(error);
  put_aside(error.text);
  return Texts{};
}

Result<void> SqliteStore::write(const Texts& texts) {
  PACELINE_TRY(open());
  sqlite3* const database = database_.get();
  if (run(database, "BEGIN IMMEDIATE") && write_all(database, texts) && run(database, "COMMIT")) return {};
  const Error error = error_of(database, file_);
  if (!sqlite3_get_autocommit(database)) run(database, "ROLLBACK");
  if (error.kind == ErrorKind::invalid) put_aside(error.text);
  return tl::unexpected(error);
}

}  // namespace paceline::store
