#pragma once

// Headers for a first program: it ingests or opens a graph, writes to it, reads and samples.
// IWYU pragma: begin_exports
#include "rhizome/graph.h"
#include "rhizome/ingest.h"
#include "rhizome/sampler.h"
#include "rhizome/write_batch.h"
// IWYU pragma: end_exports
