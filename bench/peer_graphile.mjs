// Run by Node beside graphile-worker: `peer_graphile.mjs URL JOBS` stores jobs, drains them, prints the seconds
// from the start of its worker until the table is empty and the worker has stopped.
import { Logger, makeWorkerUtils, run } from "graphile-worker";

const [url, wanted] = [process.argv[2], Number(process.argv[3])];
const logger = new Logger(() => () => {});
const slice = 1000;

const utils = await makeWorkerUtils({ connectionString: url, logger });
await utils.migrate();
for (let done = 0; done < wanted; done += slice) {
  const jobs = [];
  for (let n = done; n < Math.min(wanted, done + slice); n++) jobs.push({ identifier: "drain", payload: { number: n } });
  await utils.addJobs(jobs);
}

let ran = 0;
let drained;
const allRan = new Promise((resolve) => (drained = resolve));
const began = process.hrtime.bigint();
const runner = await run({
  preset: {
    worker: {
      connectionString: url,
      logger,
      concurrentJobs: 24,
      maxPoolSize: 26,
      pollInterval: 2000,
      localQueue: { size: 500 },
      completeJobBatchDelay: 0,
      failJobBatchDelay: 0,
    },
  },
  noHandleSignals: true,
  taskList: {
    drain: async () => {
      if (++ran === wanted) drained();
    },
  },
});
await allRan;
await runner.stop();
const seconds = Number(process.hrtime.bigint() - began) / 1e9;
const left = await utils.withPgClient((client) => client.query("select count(*)::int as jobs from graphile_worker.jobs"));
await utils.release();
if (ran !== wanted || left.rows[0].jobs !== 0) throw new Error(`${ran} of ${wanted} ran, ${left.rows[0].jobs} are left`);
console.log(seconds);
