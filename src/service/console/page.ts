/** Reads the files of the console's page: `index.html`, and `assets/`, whose names contain a hash of the content. */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { CODINGS, type Coding } from '../rules/page-rules.js'

interface FileContent {
  readonly bytes: Buffer
  /** Strong ETag, including its quotes. */
  readonly etag: string
}

export interface PageFile extends FileContent {
  readonly contentType: string
  /** Compressed versions of the file, such as `index.html.br`. */
  readonly encoded: ReadonlyMap<Coding, FileContent>
}

export interface Page {
  readonly index: PageFile
  /** Assets by file name. */
  readonly assets: ReadonlyMap<string, PageFile>
}

/** Of the files that the build makes. */
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

const ENDINGS: Readonly<Record<Coding, string>> = { br: '.br', gzip: '.gz' }

/** Returns undefined if the folder has no page: the program was built without it. */
export async function readPage(folder: string): Promise<Page | undefined> {
  if (!existsSync(join(folder, 'index.html'))) return undefined
  const [index] = (await readFiles(folder, ['index.html'])).values()
  const assets = join(folder, 'assets')
  if (index === undefined) return undefined
  return { index, assets: existsSync(assets) ? await readFiles(assets, await readdir(assets)) : new Map() }
}

async function readFiles(folder: string, names: readonly string[]): Promise<ReadonlyMap<string, PageFile>> {
  const files = names
    .filter((name) => !Object.values(ENDINGS).includes(extname(name)))
    .map(async (name) => [name, await readPageFile(join(folder, name))] as const)
  return new Map(await Promise.all(files))
}

async function readPageFile(path: string): Promise<PageFile> {
  const encoded = CODINGS.filter((coding) => existsSync(path + ENDINGS[coding])).map(
    async (coding) => [coding, await readContent(path + ENDINGS[coding])] as const,
  )
  return {
    ...(await readContent(path)),
    contentType: TYPES[extname(path)] ?? 'application/octet-stream',
    encoded: new Map(await Promise.all(encoded)),
  }
}

async function readContent(path: string): Promise<FileContent> {
  const bytes = await readFile(path)
  return { bytes, etag: `"${createHash('sha256').update(bytes).digest('hex')}"` }
}
