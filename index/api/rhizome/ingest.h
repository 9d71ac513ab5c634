#pragma once

#include <cstdint>
#include <optional>

#include "rhizome/export.h"
#include "rhizome/file_system.h"
#include "rhizome/graph_builder.h"
#include "rhizome/ingest_options.h"
#include "rhizome/job_control.h"
#include "rhizome/result.h"
#include "rhizome/store_id.h"

namespace RHIZOME_API rhizome {

/// Reads input files and writes them as a new store at `path`. Unless it returns OK, no store
/// exists there.
///
/// Memory: if the input fits in memory_bytes (or there is no limit), it is held in memory.
/// Otherwise it passes through spill files below the store's scratch folder; each single partition
/// must then fit. About 72 bytes a vertex, the nodes file's ids (unless they are 0, 1, 2, ...) and
/// its columns are always in memory. Both methods write the same bytes if they use the same
/// partitioner; if memory does not suffice for one that sees all edges at once (refined, adadne,
/// dne), hdrf replaces it.
///
/// Ids: if all are canonical decimals, they are integers, otherwise strings. Integers that are
/// exactly 0..n-1 (including those that --vertices implies, and rows of arrays without a nodes
/// file) are the vertex ids; others are numbered in order of first occurrence: nodes file, then
/// edges, src before dst.
///
/// Types are names (including numbers) that CheckName accepts, numbered in order of first
/// occurrence; without a type column there is one vertex type "vertex" and one edge type "edge". A
/// vertex that a typed nodes file does not list has the type "unknown".
///
/// Columns of the nodes file become arrays: label int64 [rows, 1] (-1: none), split uint8 [rows, 1]
/// (0 train, 1 valid, 2 test, 255 none). Other columns become int64 or float32 if every value
/// parses as one, or uint8 if they are split words; other strings are refused; "name" and "-" are
/// skipped.
///
/// Rows of arrays: row i of an array file belongs to line i of the nodes file (bad lines included),
/// or, without one, to integer id i. Vertices that only edges name get the values of
/// FillMissingRows.
///
/// Homes (BuildOptions::homes, IngestOptions::homes_file) are stored in the array `home`.
///
/// Errors: kInvalidArgument, naming file, line and reason; kNotFound; kAlreadyExists; kOutOfSpace;
/// kOutOfMemory, naming the memory that would suffice; kInterrupted.
Result<IngestReport> Ingest(FileSystem& fs, const Path& path, const IngestOptions& options,
                            const JobControl& control);

/// Writes `input` as a new store at `path`; the last step of Ingest and of the importers.
/// Errors: as BuildGeneration; kAlreadyExists.
Result<IngestReport> IngestGraph(FileSystem& fs, const Path& path, GraphInput input,
                                 const BuildOptions& build, std::optional<StoreId> store_id,
                                 const JobControl& control);

}  // namespace rhizome
