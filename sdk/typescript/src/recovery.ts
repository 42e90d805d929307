/** To go on when a sandbox failed under the work, and to say what that cost. */
import { backoff, pause } from './client.js';
import { BerthError, BusyError, ConflictError, ConnectionError, InternalError, NotFoundError } from './errors.js';
import { CommandLostError } from './exec.js';
import type { Recovered, Sandbox } from './sandbox.js';

export interface RecoveryOptions {
  /** How often the work is begun again; default 3. */
  maxRetries?: number;
  /** Before each new attempt: what was done about the sandbox, and what is lost. */
  onRecovered?: (recovered: Recovered & { attempt: number; error: BerthError }) => void;
}

/** Every attempt failed; `causes` has all their errors in order, `recovered` what was lost on the way. */
export class RecoveryError extends BerthError {
  constructor(readonly causes: BerthError[], readonly recovered: Recovered[]) {
    const last = causes.at(-1);
    super({ code: last?.code ?? 'internal', message: `${causes.length} attempts failed: ${causes.map((e) => e.message).join('; ')}`,
      remediation: last?.remediation ?? '' }, last?.status, { cause: last });
  }
}

/** What may be over with another sandbox, or in a moment. What the work itself got wrong fails again, and is thrown. */
const WORTH_IT = [ConnectionError, BusyError, ConflictError, CommandLostError, InternalError, NotFoundError];

/** Refusals of the request itself: another try is refused, too. */
const FINAL = ['options_differ', 'another_identity', 'engine_missing'];

function isWorthIt(error: unknown): error is BerthError {
  return error instanceof BerthError && !FINAL.includes(error.reason) && WORTH_IT.some((type) => error instanceof type);
}

/** From half to all of it, so that many that failed together do not come back together. */
export function recoveryPause(attempt: number, random: () => number = Math.random): number {
  return backoff(attempt) * (0.5 + random() / 2);
}

/**
 * Do the work, and if its sandbox failed or is gone, recover that and do the work from its beginning: one whose files are kept is
 * woken, any other is made anew. Once the work has called `progress`, nothing is repeated any more: its error is thrown as it is.
 */
export async function withSandboxRecovery<T>(sandbox: Sandbox, work: (sandbox: Sandbox, progress: () => void) => Promise<T>,
  options: RecoveryOptions = {}): Promise<T> {
  const causes: BerthError[] = [];
  const recovered: Recovered[] = [];
  let begun = false;
  for (let attempt = 0; ; attempt++) {
    try {
      return await work(sandbox, () => { begun = true; });
    } catch (error) {
      if (begun || !isWorthIt(error)) throw error;
      causes.push(error);
    }
    if (attempt >= (options.maxRetries ?? 3)) throw new RecoveryError(causes, recovered);
    await pause(recoveryPause(attempt));
    const what = await sandbox.recover().catch((error: unknown): Recovered => {
      if (!isWorthIt(error)) throw error;
      return { how: 'unknown', lost: 'unknown', why: error.message };
    });
    recovered.push(what);
    options.onRecovered?.({ ...what, attempt: attempt + 1, error: causes[attempt] as BerthError });
  }
}
