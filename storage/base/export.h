#pragma once

/// Marks what librhizome and librhizome_gnn export: a public header opens its namespace with it.
/// All else is compiled with hidden visibility and stays in `rhizome::internal`, but for the
/// classes of the engine that librhizome_gnn is built on: librhizome exports those too, to it
/// alone.
#define RHIZOME_API [[gnu::visibility("default")]]
