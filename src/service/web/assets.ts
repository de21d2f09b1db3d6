/** The files that the pages load. The service reads them once, at startup, and sends them from memory. */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { FastifyInstance } from 'fastify'
import { Refusal } from '../rules/refusal.js'

const TYPES = {
  'console.css': 'text/css; charset=utf-8',
  'console.js': 'text/javascript; charset=utf-8',
  'htmx.js': 'text/javascript; charset=utf-8',
  'icon.svg': 'image/svg+xml',
} as const

export interface AssetFile {
  readonly contentType: string
  readonly bytes: Buffer
  readonly gzip: Buffer
  /** With a hash of the content, so that a browser keeps the file until it changes. */
  readonly url: string
}

export type AssetFiles = ReadonlyMap<string, AssetFile>

/** Returns undefined if the folder has no pages: the program was built without them. */
export async function readAssets(folder: string): Promise<AssetFiles | undefined> {
  if (!existsSync(folder)) return undefined
  const files = Object.entries(TYPES).map(async ([name, contentType]) => {
    const bytes = await readFile(join(folder, name))
    const hash = createHash('sha256').update(bytes).digest('base64url').slice(0, 12)
    return [name, { contentType, bytes, gzip: gzipSync(bytes), url: `/assets/${name}?v=${hash}` }] as const
  })
  return new Map(await Promise.all(files))
}

export const acceptsGzip = (acceptEncoding: string | undefined): boolean =>
  /\bgzip\b/i.test(acceptEncoding ?? '')

export async function addAssetRoutes(app: FastifyInstance, files: AssetFiles): Promise<void> {
  app.get<{ Params: { name: string } }>('/assets/:name', async (request, reply) => {
    const file = files.get(request.params.name)
    if (file === undefined) throw new Refusal('not_found')
    const isGzip = acceptsGzip(request.headers['accept-encoding'])
    if (isGzip) reply.header('content-encoding', 'gzip')
    return reply
      .headers({
        'cache-control': request.url === file.url ? 'public, max-age=31536000, immutable' : 'no-cache',
        'x-content-type-options': 'nosniff',
        vary: 'accept-encoding',
      })
      .type(file.contentType)
      .send(isGzip ? file.gzip : file.bytes)
  })
}
