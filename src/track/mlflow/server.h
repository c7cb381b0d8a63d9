/*
 * server.h: an MLflow server's REST API: a run by our own id, and what is logged to it.
 *
 * The server numbers runs itself. Ours has its id and attempt as tags, by which it is found again,
 * so that a run that was made just before a crash is not made twice. A point is logged twice
 * without harm: metric, step, time and value are the primary key of the server's table.
 */
#pragma once

#include "track/tracker.h"

struct mlflow_server;

/* What the environment says, as MLflow's own client reads it. The URI without user and password,
 * NULL = unset; in the arena. */
const char *mlflow_uri(struct lab_arena *arena);

/* Of MLFLOW_TRACKING_URI; nothing is sent yet. */
struct mlflow_server *mlflow_server_open(struct lab_arena *arena, struct lab_err *err);
void mlflow_server_close(struct mlflow_server *server);

/* Finds the run, or makes it where `make`; earlier attempts are removed there. What follows goes
 * to it. */
int mlflow_server_run(struct mlflow_server *server, const struct lab_track_run *run, bool make,
                      struct lab_err *err);

/* Lists of JSON objects, joined by commas. */
int mlflow_server_log(struct mlflow_server *server, const char *metrics, const char *params,
                      const char *tags, struct lab_err *err);
/* Of a run that several hosts write, the last one's end; it has failed where one of them did. */
int mlflow_server_end(struct mlflow_server *server, bool failed, int64_t end_ms,
                      struct lab_err *err);
/* A file as an artefact; nothing where the server doesn't take them itself. */
int mlflow_server_upload(struct mlflow_server *server, const char *path, struct lab_err *err);
