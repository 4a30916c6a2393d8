// The least that Restate makes durable: one handler that answers what it was asked. Served for `run.sh` beside it.

// The SDK wants a newer Node for this one function.
Promise.withResolvers ??= () => {
  let resolve, reject;
  const promise = new Promise((yes, no) => { [resolve, reject] = [yes, no]; });
  return { promise, resolve, reject };
};

const restate = await import("@restatedev/restate-sdk");
const bench = restate.service({ name: "bench", handlers: { run: async (_context, text) => text } });
await restate.serve({ services: [bench], port: 9080 });
