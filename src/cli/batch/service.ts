/** What a batch needs of the service, joined with the journal and the downloader. */
import type { Active, BatchService } from '../../batch/carry-out/index.js'
import type { Claim } from '../../batch/lock/claim.js'
import type { Made } from '../../batch/lock/lock.js'
import { inputToSend } from '../../batch/manifest/index.js'
import type { RunOutput } from '../../download/index.js'
import type { RushesError } from '../../errors.js'
import type { Connection, Context } from '../context/context.js'
import { asRushesError } from '../process/exit.js'
import { Interruption } from '../process/interrupts.js'
import { createRunFollower } from '../runs/follow-run.js'
import { statusIn } from '../runs/record.js'
import { encodeRequest } from '../runs/request.js'
import { withRunOutputs } from '../runs/run-outputs.js'
import { mayExist, submit } from '../runs/submit.js'
import { type BatchWords, batchCommandLine } from './command-line.js'
import { createSourceUrls } from './source-urls.js'

/** The address at which a run of the lock file was created. */
const createdAt = ({ locked }: Active, id: string): string | undefined => {
  const { made, pending } = locked ?? {}
  return made?.run === id ? made.service : pending?.service
}

export interface BatchServiceOptions {
  /** The command, for errors that say how to continue. */
  readonly words: BatchWords
  /** Absolute: the manifest's. */
  readonly folder: string
  /** The output of a row, by the lock file. */
  madeOf(name: string): Made | undefined
  readonly claim: Claim
  /** Stops the downloads. */
  readonly signal: AbortSignal
  /** The journal cannot be written: no create is sent without it. */
  onJournalTrouble(): void
  /** A signal came while a create is unanswered. */
  onGrace(): void
}

export async function createBatchService(
  ctx: Context,
  { client, fetch }: Connection,
  { words, folder, madeOf, claim, signal, onJournalTrouble, onGrace }: BatchServiceOptions,
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
        ? `It was created at ${service}. To continue there: --base-url ${service}. To create it again and pay again: \`${command} --only <row> --force\``
        : `Check the API key: a run is visible only to its account. To create it again and pay again: \`${command} --only <row> --force\``,
    })
  }

  function prepare(token: string): void {
    try {
      recorder.prepare([token])
    } catch (error) {
      onJournalTrouble()
      throw error
    }
  }

  async function submitRow(
    { entry, model = '', meaning = entry.meaning }: Active,
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
    follow(step, id, created) {
      const { kind } = step.entry
      const follower = createRunFollower(
        { client, clock, recorder },
        { id, kind, model: step.model, ...created },
      )
      return {
        async poll(options) {
          const polled = await follower.poll(options)
          if (polled.is !== 'over') return polled
          const { state, error } = polled.run
          const isLost = error?.code === 'run_not_found'
          return {
            is: 'over',
            state,
            error: isLost ? notFound(error, createdAt(step, id)) : error,
            durationMs: polled.durationMs,
          }
        },
        errorAtLimit: follower.errorAtLimit,
      }
    },
    async download({ entry }, state, places, beforePlace) {
      const outputs = state.urls.map(
        (url, at): RunOutput => ({
          url,
          runId: state.id,
          kind: entry.kind,
          name: entry.rowName,
          freshUrl: async () => (await client.get(state.id, signal)).urls[at],
        }),
      )
      try {
        const results = await downloader.download(outputs, {
          target: { kind: 'template', template: '' },
          namer: { name: () => places.map(({ path }) => path) },
          overwrite: (output) => places[outputs.indexOf(output)]?.mayReplace === true,
          signal,
          earlier: [...places.flatMap(({ inPlace }) => inPlace ?? []), ...recorder.filesOf(state.id)],
          beforeMove: (file, output) => beforePlace(file, outputs.indexOf(output)),
        })
        const files = results.flatMap((each) => (each.ok ? [each.file] : []))
        recorder.recordFiles(state.id, files)
        sources.learn(state)
        for (const each of results) if (!each.ok) return each
        const [first, ...further] = files
        if (first === undefined) throw new Error('a succeeded run has an output')
        return {
          ok: true,
          files: [first, ...further],
          warnings: results.flatMap((each) => (each.ok ? each.warnings : [])),
        }
      } catch (thrown) {
        return { ok: false, error: asRushesError(thrown).with({ runId: state.id }) }
      }
    },
  }
}
