/** Operations of a batch that need the service, the journal or the downloader. */
import { resolve } from 'node:path'
import type { Destination, OutputFile, Place } from '../../batch/carry-out/places.js'
import type { ActiveStep } from '../../batch/carry-out/rows.js'
import type { BatchClaim } from '../../batch/lock/claim.js'
import type { Made } from '../../batch/lock/lock.js'
import { inputToSend } from '../../batch/manifest/index.js'
import type { RushesError } from '../../errors.js'
import { asRushesError, Interruption } from '../../host/interrupts.js'
import type { RunState } from '../../protocol/run-state.js'
import { quoteWord } from '../../protocol/text.js'
import { createOutageCheck, mayExist, stopsCreating, submit } from '../../runs/create.js'
import { deliver } from '../../runs/deliver.js'
import { knownRun } from '../../runs/follow.js'
import type { RunsOptions } from '../../runs/index.js'
import { statusIn } from '../../runs/recorder.js'
import type { Connection, Context } from '../context/context.js'
import type { Prices } from '../models/prices.js'
import { encodeRequest } from '../runs/request.js'
import { withRunOutputs } from '../runs/run-outputs.js'
import { estimateOf } from './estimates.js'
import { type BatchWords, batchCommandLine } from './options.js'
import { createSourceUrls } from './source-urls.js'

export interface BatchService {
  /** Address of the service, as written to the lock file. */
  readonly address: string
  /** Parts that the engine needs. */
  readonly runs: Pick<RunsOptions, 'client' | 'recorder' | 'isLocal'>
  /**
   * Creates the run of a row. `token`: identifies this create in the journal. `beforeSend` is called each time before
   * the create is sent, after the journal has recorded the token. If it rejects, the create is not sent. Never rejects.
   */
  submit(step: ActiveStep, token: string, beforeSend: () => Promise<void>): Promise<Submitted>
  /** Downloads the outputs of a succeeded run, and moves them into place. Never rejects. */
  download(
    step: ActiveStep,
    state: RunState,
    places: readonly Place[],
    beforeMove: (file: OutputFile, index: number) => Promise<Destination>,
  ): Promise<Downloaded>
  /** Adds to the error of a followed run how to continue. `state`: the last one received. */
  explain(step: ActiveStep, error: RushesError, state: RunState | undefined): RushesError
  /** Command that continues the batch and pays for no run again: it leaves out `--force`. */
  readonly continuation: string
  /** Whether the journal knows that the run succeeded without URLs. */
  isWithoutUrls(run: string): boolean
}

export interface Created {
  /** Status in the response to the create, if any. */
  readonly status?: string | undefined
  /** Monotonic times in milliseconds. */
  readonly sentAtMs: number
  readonly answeredAtMs: number
}

type Submitted =
  | ({ readonly is: 'created'; readonly id: string } & Created)
  /** A run may exist. `key`: key of its row in the journal. */
  | { readonly is: 'unconfirmed'; readonly key: string | undefined; readonly error: RushesError }
  | { readonly is: 'refused'; readonly error: RushesError }
  /** The batch was stopped before the create was sent. The row has not started. */
  | { readonly is: 'unsent' }

export interface Downloaded {
  /** All outputs of the run in their order, if there are no errors. */
  readonly files: readonly OutputFile[]
  readonly warnings: readonly string[]
  readonly error?: RushesError | undefined
}

interface BatchServiceOptions {
  /** The command line, for hints about how to continue. */
  readonly words: BatchWords
  /** Absolute path of the manifest's folder. */
  readonly folder: string
  /** Returns the outputs of a row, according to the lock file. */
  madeOf(name: string): Made | undefined
  readonly prices: Prices
  readonly claim: BatchClaim
  /** Aborts the downloads. */
  readonly signal: AbortSignal
  /** Called when the journal cannot be written, or the service is down: no further create is sent. */
  onNoCreates(): void
  /** Called if a signal arrives while a create has no response. */
  onGrace(): void
}

export async function createBatchService(
  ctx: Context,
  { client, fetch }: Connection,
  { words, folder, madeOf, prices, claim, signal, onNoCreates, onGrace }: BatchServiceOptions,
): Promise<BatchService> {
  const { clock, interrupts } = ctx
  const recorder = await ctx.recorder()
  const downloader = await ctx.downloader(fetch)
  const address = await ctx.address()
  const manifest = words.word === '-' ? undefined : resolve(words.word)
  const continuation = `\`${batchCommandLine(ctx.globals, words)}\``
  const outage = createOutageCheck()
  const sources = createSourceUrls({
    client,
    fetch,
    clock,
    address,
    folder,
    madeOf,
    signal: interrupts.first,
  })

  /**
   * `service`: address where the run was created. The run may belong to another key, so it is not created again unless
   * the user asks for it.
   */
  function notFound(error: RushesError, service: string | undefined): RushesError {
    const isElsewhere = service !== undefined && service !== address
    return error.with({
      hint: isElsewhere
        ? `It was created at ${service}. To continue there: --base-url ${service}. ${payAgain('<row>')}`
        : `Check the API key: a run is visible only to its account. ${payAgain('<row>')}`,
    })
  }

  function payAgain(row: string): string {
    const flags = { ...words.flags, only: [], watch: false, yes: false }
    const command = batchCommandLine(ctx.globals, { ...words, flags })
    return `To create it again and pay again: \`${command} --only ${row} --force\``
  }

  function prepare(token: string): void {
    try {
      recorder.prepare([token])
    } catch (error) {
      onNoCreates()
      throw error
    }
  }

  async function submitRow(
    step: ActiveStep,
    token: string,
    beforeSend: () => Promise<void>,
    onUnconfirmed: (key: string | undefined) => void,
  ) {
    const { entry, model = '', meaning = entry.meaning } = step
    const { kind, labels, rowName: name } = entry
    const estimate = estimateOf(step, prices)
    const input = await withRunOutputs(ctx, { client, fetch }, await inputToSend(entry, sources.urlOf))
    const kept = recorder.note(
      { kind, model, input, meaning, estimate, labels, name, manifest, requestId: token, isPrepared: true },
      'required',
    )
    const unknown: typeof kept.unknown = (error) => {
      const key = kept.unknown(error)
      onUnconfirmed(key)
      return key
    }
    const note = { ...kept, unknown }
    return submit({
      client,
      body: encodeRequest(model, input),
      clock,
      interrupts,
      note,
      async beforeSend() {
        // Write the journal before the lock file: if the batch is killed between the two writes, the next one knows
        // that nothing was sent.
        prepare(token)
        await beforeSend()
        // Check after the lock file has recorded the create: see claim.ts.
        await claim.check()
      },
      onGrace,
    })
  }

  /** Adds how to continue to an error that also stops other creates, or would be the same for them. */
  function refused(error: RushesError): RushesError {
    outage.add(error)
    if (outage.isDown) onNoCreates()
    if (!stopsCreating(error) && !outage.isDown) return error
    const next = `Continue with ${continuation}: runs that exist are not paid again.`
    return error.with({ hint: error.hint === undefined ? next : `${error.hint} ${next}` })
  }

  return {
    address,
    continuation,
    runs: { client, recorder, isLocal: ctx.globals.local },
    async submit(step, token, beforeSend) {
      let key: string | undefined
      const onUnconfirmed = (kept: string | undefined) => {
        key = kept
      }
      try {
        const run = await submitRow(step, token, beforeSend, onUnconfirmed)
        outage.add(undefined)
        return { is: 'created', ...run, status: statusIn(run.body) }
      } catch (thrown) {
        if (thrown instanceof Interruption || thrown === claim.lost.reason) return { is: 'unsent' }
        if (mayExist(thrown)) return { is: 'unconfirmed', key, error: thrown }
        return { is: 'refused', error: refused(asRushesError(thrown)) }
      }
    },
    explain(step, error, state) {
      if (error.code === 'run_not_found') return notFound(error, createdAt(step))
      if (state?.withoutUrls === undefined) return error
      return error.with({ hint: `${error.hint} ${payAgain(quoteWord(step.entry.name))}` })
    },
    isWithoutUrls: (run) => knownRun(run, recorder.find(run)).isWithoutUrls === true,
    async download({ entry }, state, places, beforeMove) {
      const { files, warnings, errors, thrown } = await deliver({
        client,
        clock,
        downloader,
        state,
        run: { kind: entry.kind, name: entry.rowName },
        target: { kind: 'template', template: '' },
        namer: { name: () => places.map(({ path }) => path) },
        mayReplace: (index) => places[index]?.inPlace === undefined,
        signal,
        earlier: [...places.flatMap(({ inPlace }) => inPlace ?? []), ...recorder.filesOf(state.id)],
        beforeMove,
      })
      if (thrown !== undefined)
        return { files, warnings, error: asRushesError(thrown).with({ runId: state.id }) }
      recorder.recordFiles(state.id, files)
      sources.learn(state)
      const hint = `Download it with ${continuation}: nothing is paid again.`
      const error = errors[0]?.with({ hint: [errors[0].hint, hint].filter(Boolean).join(' ') })
      return { files, warnings, error }
    },
  }
}

/** Returns the address at which the run of a row was created. */
function createdAt({ locked, action }: ActiveStep): string | undefined {
  const { made, pending } = locked ?? {}
  const isMade = action.do === 'download' && made?.run === action.run
  return isMade ? made?.service : pending?.service
}
