-- purpose: the game's tables on SQLite
create table if not exists game_shards (
  shard varchar(40) primary key,
  game_id varchar(40) not null,
  provider_account varchar(80) not null
);
create table if not exists game_payments (
  payment_id varchar(60) primary key,
  shard varchar(40) not null,
  game_id varchar(40) not null,
  provider_ref varchar(80) not null,
  amount bigint not null,
  currency varchar(8) not null,
  state varchar(30) not null,
  version integer not null,
  refunded bigint,
  day varchar(10) not null,
  updated_at_ms bigint not null
);
create index if not exists game_payments_day on game_payments (shard, day);
create index if not exists game_payments_ref on game_payments (provider_ref);
create table if not exists game_corrections (
  id integer primary key autoincrement,
  job_key varchar(200) not null,
  payment_id varchar(60) not null,
  from_state varchar(30) not null,
  to_state varchar(30) not null,
  from_version integer not null,
  refunded bigint not null,
  resubmitted varchar(80) not null default ''
);
create table if not exists game_exceptions (
  id integer primary key autoincrement,
  job_key varchar(200) not null,
  kind varchar(40) not null,
  payment_id varchar(60) not null,
  provider_ref varchar(80) not null,
  detail varchar(500) not null
);
create table if not exists game_postings (
  id integer primary key autoincrement,
  job_key varchar(200) not null,
  currency varchar(8) not null,
  gross bigint not null,
  fee bigint not null,
  net bigint not null
);
create table if not exists game_audit (
  id integer primary key autoincrement,
  job_key varchar(200) not null,
  shard varchar(40) not null,
  day varchar(10) not null,
  compared integer not null,
  corrected integer not null,
  exceptions integer not null,
  provider_calls integer not null,
  delivery integer not null,
  written_at_ms bigint not null
);
create table if not exists game_matches (
  match_id varchar(60) primary key,
  shard varchar(40) not null,
  state varchar(20) not null,
  version integer not null,
  expires_at_ms bigint not null,
  position integer not null
);
create table if not exists game_cleanups (
  id integer primary key autoincrement,
  job_key varchar(200) not null,
  match_id varchar(60) not null,
  shard varchar(40) not null,
  position integer not null,
  outcome varchar(40) not null,
  written_at_ms bigint not null
);
