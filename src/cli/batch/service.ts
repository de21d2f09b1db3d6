/** What the rows of a batch need of the service, the journal and the downloader. */
import type { OutputFile, Place } from '../../batch/carry-out/places.js'
import type { ActiveStep } from '../../batch/carry-out/rows.js'
import type { BatchClaim } from '../../batch/lock/claim.js'
import type { Made } from '../../batch/lock/lock.js'
import { inputToSend } from '../../batch/manifest/index.js'
import type { RushesError } from '../../errors.js'
import { asRushesError, Interruption } from '../../host/interrupts.js'
import type { RunState } from '../../protocol/run-state.js'
import { mayExist, submit } from '../../runs/create.js'
import { deliver } from '../../runs/deliver.js'
import type { RunsOptions } from '../../runs/index.js'
import { statusIn } from '../../runs/recorder.js'
import type { Connection, Context } from '../context/context.js'
import { encodeRequest } from '../runs/request.js'
import { withRunOutputs } from '../runs/run-outputs.js'
import { type BatchWords, batchCommandLine } from './options.js'
import { createSourceUrls } from './source-urls.js'

export interface BatchService {
  /** The address, as the lock file names it. */
  readonly address: string
  /** For the engine. */
  readonly runs: Pick<RunsOptions, 'client' | 'recorder'>
  /**
   * Creates the run of a row. `token`: of this create, for the journal. `beforeSend` is called before each
   * sending, after the journal has
   * the token; its rejection stops the create. Never rejects.
   */
  submit(step: ActiveStep, token: string, beforeSend: () => Promise<void>): Promise<Submitted>
  /** Puts the outputs of a succeeded run in place. Never rejects. */
  download(
    step: ActiveStep,
    state: RunState,
    places: readonly Place[],
    beforeMove: (file: OutputFile, index: number) => Promise<void>,
  ): Promise<Downloaded>
  /** Adds how to continue to the error of a run that the service does not know. */
  explain(step: ActiveStep, error: RushesError): RushesError
}

export interface Created {
  /** The service's own word, if the response to the create has one. */
  readonly status?: string | undefined
  /** Monotonic instants, in milliseconds. */
  readonly sentAtMs: number
  readonly answeredAtMs: number
}

export type Submitted =
  | ({ readonly is: 'created'; readonly id: string } & Created)
  /** A run may exist. `key`: of the journal's row. */
  | { readonly is: 'unconfirmed'; readonly key: string | undefined; readonly error: RushesError }
  | { readonly is: 'refused'; readonly error: RushesError }
  /** The batch was stopped before anything was sent: the row has not started. */
  | { readonly is: 'unsent' }

export interface Downloaded {
  /** All outputs of the run in their order, if there is no error. */
  readonly files: readonly OutputFile[]
  readonly warnings: readonly string[]
  readonly error?: RushesError | undefined
}

export interface BatchServiceOptions {
  /** The command, for errors that say how to continue. */
  readonly words: BatchWords
  /** Absolute: the manifest's. */
  readonly folder: string
  /** The output of a row, by the lock file. */
  madeOf(name: string): Made | undefined
  readonly claim: BatchClaim
  /** Stops the downloads. */
  readonly signal: AbortSignal
  /** The journal cannot be written: no create is sent without it. */
  onJournalError(): void
  /** A signal came while a create is unanswered. */
  onGrace(): void
}

export async function createBatchService(
  ctx: Context,
  { client, fetch }: Connection,
  { words, folder, madeOf, claim, signal, onJournalError, onGrace }: BatchServiceOptions,
): Promise<BatchService> {
  const { clock, interrupts } = ctx
  const recorder = await ctx.recorder()
  const downloader = await ctx.downloader(fetch)
  const address = await ctx.address()
  const sources = createSourceUrls({
    client,
    fetch,
    clock,
    address,
    folder,
    madeOf,
    signal: interrupts.first,
  })

  /** `service`: where it was created. The run may be there for another key, so nothing is created in its place unasked. */
  function notFound(error: RushesError, service: string | undefined): RushesError {
    const flags = { ...words.flags, only: [], watch: false, yes: false }
    const command = batchCommandLine(ctx.globals, { ...words, flags })
    const isElsewhere = service !== undefined && service !== address
    return error.with({
      hint: isElsewhere
        ? `It was created at ${service}. To continue there: --base-url ${service}. To create it again and pay ` +
          `again: \`${command} --only <row> --force\``
        : `Check the API key: a run is visible only to its account. To create it again and pay again: ` +
          `\`${command} --only <row> --force\``,
    })
  }

  function prepare(token: string): void {
    try {
      recorder.prepare([token])
    } catch (error) {
      onJournalError()
      throw error
    }
  }

  async function submitRow(
    { entry, model = '', meaning = entry.meaning }: ActiveStep,
    token: string,
    beforeSend: () => Promise<void>,
    onUnconfirmed: (key: string | undefined) => void,
  ) {
    const input = await withRunOutputs(ctx, client, await inputToSend(entry, sources.urlOf))
    const kept = recorder.note(
      { kind: entry.kind, model, input, meaning, requestId: token, isPrepared: true },
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
        // Before the lock file: a batch that is killed between the two knows then that nothing was sent.
        prepare(token)
        await beforeSend()
        // After the lock file knows of the create: see claim.ts.
        await claim.check()
      },
      onGrace,
    })
  }

  return {
    address,
    runs: { client, recorder },
    async submit(step, token, beforeSend) {
      let key: string | undefined
      const onUnconfirmed = (kept: string | undefined) => {
        key = kept
      }
      try {
        const run = await submitRow(step, token, beforeSend, onUnconfirmed)
        return { is: 'created', ...run, status: statusIn(run.body) }
      } catch (thrown) {
        if (thrown instanceof Interruption || thrown === claim.lost.reason) return { is: 'unsent' }
        if (mayExist(thrown)) return { is: 'unconfirmed', key, error: thrown }
        return { is: 'refused', error: asRushesError(thrown) }
      }
    },
    explain: (step, error) => (error.code === 'run_not_found' ? notFound(error, createdAt(step)) : error),
    async download({ entry }, state, places, beforeMove) {
      const { files, warnings, errors, thrown } = await deliver({
        client,
        downloader,
        state,
        run: { kind: entry.kind, name: entry.rowName },
        target: { kind: 'template', template: '' },
        namer: { name: () => places.map(({ path }) => path) },
        mayReplace: (index) => places[index]?.mayReplace === true,
        signal,
        earlier: [...places.flatMap(({ inPlace }) => inPlace ?? []), ...recorder.filesOf(state.id)],
        beforeMove,
      })
      if (thrown !== undefined)
        return { files, warnings, error: asRushesError(thrown).with({ runId: state.id }) }
      recorder.recordFiles(state.id, files)
      sources.learn(state)
      return { files, warnings, error: errors[0] }
    },
  }
}

/** The address at which the run of a row was created. */
function createdAt({ locked, action }: ActiveStep): string | undefined {
  const { made, pending } = locked ?? {}
  const isMade = action.do === 'download' && made?.run === action.run
  return isMade ? made?.service : pending?.service
}
