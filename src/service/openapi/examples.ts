/** Examples for people: two creates, and a run in each status. */
import { KINDS, type Kind } from '../../protocol/models.js'
import type { LocalStatus } from '../../protocol/run-state.js'
import { runObject, type StoredRun } from '../stored-run.js'
import type { Json } from './schemas.js'

export const RUN_ID = 'run_7k2m9x4c8v1b6n3q5w0z'
export const OUTPUT_TOKEN = 'qX3vT8mLr0Zk5NwYb1HsJd7PfC2aGu9EiV6oKxRt'
export const OUTPUT_NAME = 'picture.png'

const CREATED_MS = Date.UTC(2026, 0, 15, 9, 30)

const IMAGE = {
  sha256: '3f79bb7b435b05321651daefd374cdc681dc06faa65e374e38337b88ca046dea',
  bytes: 48_213,
  content_type: 'image/jpeg',
}

const INPUTS: Readonly<Record<Kind, Json>> = {
  video: { prompt: 'a boat leaves the harbour at dawn', aspect_ratio: '16:9', duration: '5' },
  image: { prompt: 'a red fox in fresh snow', quality: 'high' },
}

const example = (summary: string, value: unknown): Json => ({ summary, value })

export function createExamples(models: Readonly<Record<Kind, string>>): Json {
  const sketch = 'https://example.com/sketch.jpg'
  return {
    ...Object.fromEntries(
      KINDS.map((kind) => [kind, example(`A new ${kind}`, { model: models[kind], input: INPUTS[kind] })]),
    ),
    reference: example('An image from references', {
      model: models.image,
      input: {
        prompt: 'the same fox, at night',
        image_urls: [sketch, 'data:image/png;base64,iVBORw0KGgo='],
      },
    }),
  }
}

/** Of runs of the image model, in these statuses. */
export function runExamples(
  models: Readonly<Record<Kind, string>>,
  baseUrl: string,
  statuses: readonly LocalStatus[],
): Json {
  const details: Readonly<Record<LocalStatus, Partial<StoredRun>>> = {
    queued: {},
    processing: { startedAtMs: CREATED_MS + 200 },
    succeeded: {
      startedAtMs: CREATED_MS + 200,
      finishedAtMs: CREATED_MS + 2_900,
      outputs: [
        {
          token: OUTPUT_TOKEN,
          name: OUTPUT_NAME,
          contentType: 'image/png',
          bytes: 1_204_551,
          sha256: IMAGE.sha256,
        },
      ],
    },
    failed: {
      input: { ...INPUTS.image, image_urls: [IMAGE] },
      startedAtMs: CREATED_MS + 200,
      finishedAtMs: CREATED_MS + 1_400,
      failure: { code: 'render_failed', message: 'The renderer wrote no output file.' },
    },
  }
  const run = (status: LocalStatus): StoredRun => ({
    id: RUN_ID,
    accountId: 1,
    model: models.image,
    kind: 'image',
    status,
    input: INPUTS.image,
    outputs: [],
    failure: undefined,
    createdAtMs: CREATED_MS,
    startedAtMs: undefined,
    finishedAtMs: undefined,
    ...details[status],
  })
  return Object.fromEntries(
    statuses.map((status) => [status, example(`Status: ${status}`, runObject(run(status), baseUrl))]),
  )
}
