/** Manifests in folders of their own, with the command line's own rules for names and images. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parse } from 'yaml'
import type { Made } from '../../src/batch/lock/lock.js'
import type { ManifestEntry } from '../../src/batch/manifest/entry.js'
import { type ManifestResult, readManifest } from '../../src/batch/manifest/index.js'
import type { Models } from '../../src/batch/manifest/row.js'
import { identifyMediaFile } from '../../src/cli/runs/media-sources.js'
import { summaryOf } from '../../src/protocol/identity.js'
import { MAX_BODY_BYTES } from '../../src/protocol/limits.js'
import { readModelDocument } from '../../src/protocol/model-document.js'
import type { ModelDocument } from '../../src/protocol/models.js'
import { temporaryFolder } from '../support/index.js'

export function folderWith(files: Readonly<Record<string, string | Uint8Array>> = {}): string {
  const folder = temporaryFolder()
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), content)
  }
  return folder
}

/** The model documents of a YAML list. */
export const documentsOf = (text: string): readonly ModelDocument[] =>
  parse(text).flatMap((value: unknown) => {
    const problems: string[] = []
    const document = readModelDocument(value, (_, message) => problems.push(message))
    if (document === undefined) throw new Error(problems.join('\n'))
    return document
  })

/** An entry of a lock file: the picture that a run of this hash made. */
export const madeOf = (hash: string, more: Partial<Made> = {}): Made => ({
  hash,
  kind: 'image',
  model: 'acme/still-1',
  run: 'run_1',
  service: undefined,
  url: 'https://cdn.example/1.png',
  file: 'fox.png',
  sha256: hash,
  bytes: 1,
  content_type: 'image/png',
  made_at: '2026-01-01T00:00:00.000Z',
  ...more,
})

export interface ReadOptions {
  /** Its extension decides the format. */
  readonly name?: string
  readonly folder?: string
  readonly allowOutside?: boolean
  /** Models whose documents are known. */
  readonly documents?: readonly ModelDocument[]
  /** Models of the settings. */
  readonly settings?: Models
  readonly maxBodyBytes?: number
}

export const read = (
  text: string | Uint8Array,
  {
    name = 'shots.yaml',
    folder = folderWith(),
    allowOutside = false,
    documents = [],
    settings = {},
    maxBodyBytes = MAX_BODY_BYTES,
  }: ReadOptions = {},
): Promise<ManifestResult> =>
  readManifest({
    path: join(folder, name),
    bytes: Buffer.from(text),
    allowOutside,
    reserved: [join(folder, name), join(folder, 'shots.lock.json')],
    documentOf: (model) => documents.find((each) => each.name === model),
    settings,
    readMedia: (file, shown, type) =>
      identifyMediaFile(file, { shown, type, signal: new AbortController().signal }),
    summaryOf,
    maxBodyBytes,
  })

/** What is wrong, as `line message`. */
export async function problemsOf(
  text: string | Uint8Array,
  options?: ReadOptions,
): Promise<readonly string[]> {
  const result = await read(text, options)
  return result.ok ? [] : result.problems.map(({ line, message }) => `${line} ${message}`)
}

export async function entriesOf(text: string, options?: ReadOptions): Promise<readonly ManifestEntry[]> {
  const result = await read(text, options)
  if (!result.ok)
    throw new Error(result.problems.map(({ line, message }) => `${line}: ${message}`).join('\n'))
  return result.manifest.entries
}
