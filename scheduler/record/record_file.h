#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/base/instant.h"
#include "runtime/base/result.h"
#include "scheduler/record/decision.h"

namespace paceline::scheduler {

/// The file of one agent's decisions: RUN/decisions-NODE.bin.
///
///   "paceline decisions 1\n", then blocks: size, checksum (4 bytes each, little-endian), what kind of block, contents:
///   'h' one head (JSON text of the writer's own), 'd' decisions (decision_codec.h), 'e' the end: how many there are
///
/// A file without its end is of a run that was cut off, or still goes on.
std::string record_path(const std::string& run_directory, NodeId node);

/// Writes them, buffered; to the file about once a second, and when it is flushed. A full disk ends the writing, never
/// the run. One thread.
class RecordWriter {
 public:
  static Result<RecordWriter> create(const std::string& path, const std::string& head);
  RecordWriter(RecordWriter&&) noexcept;
  RecordWriter& operator=(RecordWriter&&) noexcept;
  /// What is buffered is written; the end is not.
  ~RecordWriter();

  void add(const Decision& decision);
  /// All of them are in the file, also if this process is killed.
  void flush();
  /// The job has come to its end by itself. Nothing is written afterwards.
  void finish();

 private:
  struct File;
  explicit RecordWriter(std::unique_ptr<File> file);
  std::unique_ptr<File> file_;
};

struct Record {
  std::string head;
  std::vector<Decision> decisions;
  bool ended = true;  ///< False: its writer was killed; what it had not written yet is missing.
};

/// `not_found`: no such file; `invalid`: half written, damaged, or no record at all, and which.
Result<Record> read_record(const std::string& path);
/// The same of a node that may have been killed: then what is there, up to the last block that is whole.
Result<Record> read_record_of_killed(const std::string& path);

}  // namespace paceline::scheduler
