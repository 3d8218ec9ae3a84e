#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "runtime/store/state_store.h"

struct sqlite3;

namespace paceline::store {

/// A SQLite database in one file of ours alone (with its write-ahead log beside it). It is made with the first text
/// that is written. One that cannot be read is put aside under the name `FILE.damaged`, and a new one begins.
class SqliteStore final : public StateStore {
 public:
  explicit SqliteStore(std::filesystem::path file);
  ~SqliteStore() override;

  Result<Texts> read(const std::string& prefix) override;
  Result<void> write(const Texts& texts) override;
  /// What was wrong with the file that was put aside; empty: none was.
  const std::string& damage() const { return damage_; }

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  using Database = std::unique_ptr<sqlite3, Close>;

  Result<void> open();
  Result<Database> open_file() const;
  void put_aside(const std::string& why);

  std::filesystem::path file_;
  Database database_;
  std::string damage_;
};

}  // namespace paceline::store
