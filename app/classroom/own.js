// The run of one follower, in a worker of the follower's own device. `program` stands before this; see
// `stein_core.sweep.in_browser`.
// Milliseconds that a run may take here. The server makes it if it takes longer, or if its first steps promise twice that.
const LONGEST = 20000;

onmessage = ({data: {args, limits}}) => {
  const began = performance.now(), most = Math.ceil(limits[1] / program.every);
  let run = program.begin(args);
  for (let blocks = 1; !run[program.done]; blocks++) {
    run = program.block(run, args, limits);
    const took = performance.now() - began;
    if (took > LONGEST || blocks >= 5 && took * most / blocks > 2 * LONGEST) return postMessage({ended: 0, result: 0});
  }
  const result = program.finish(run, args)[0];
  postMessage(Number.isFinite(result) ? {ended: run[program.done], result} : {ended: 3, result: 0});
};
