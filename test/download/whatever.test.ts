/** Whatever a host does, and whenever a download is interrupted: one whole file under the name, or none. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { temporaryFolder } from '../support/index.js'
import { PROOF } from '../support/proof.js'
import { host, OTHER, type Turn, WHOLE } from './breaking-host.js'
import { download, sha256 } from './download-setup.js'

const RUNS = 60 * PROOF

const turn: fc.Arbitrary<Turn> = fc.record(
  {
    breakAfter: fc.option(fc.nat({ max: 310_000 }), { nil: undefined }),
    file: fc.constantFrom(WHOLE, OTHER),
    ranges: fc.constantFrom('none', 'honest', 'blind', 'wrong'),
    etag: fc.constantFrom('"same"', undefined, '', 'W/"weak"'),
    status: fc.option(fc.constantFrom(416, 503, 404), { nil: undefined, freq: 6 }),
    encodes: fc.boolean(),
    isChunked: fc.boolean(),
  },
  { requiredKeys: [] },
)

/** One that calls two files by one strong name, or sends the rest of another and says nothing, is believed. */
const honest = (each: Turn): Turn => {
  const isNamed = each.etag === '"same"'
  const isMute = each.ranges === 'blind' && each.etag === ''
  return isNamed || isMute ? { ...each, file: WHOLE } : each
}

/** A signal after so many bytes. */
const command = fc.option(fc.nat({ max: 400_000 }), { nil: undefined })

it('there is one whole file under the name, or none', async () => {
  const files = new Set([WHOLE, OTHER].map(sha256))
  const turns = fc.array(turn, { minLength: 1, maxLength: 8 })
  const commands = fc.array(command, { minLength: 1, maxLength: 3 })
  await fc.assert(
    fc.asyncProperty(turns, commands, async (turns, commands) => {
      const folder = temporaryFolder()
      const path = join(folder, 'run-1.png')
      const { fetch } = host(...turns.map(honest))
      for (const stopAfter of [...commands, undefined]) {
        const stop = new AbortController()
        const result = await download({
          fetch,
          folder,
          overwrite: true,
          signal: stop.signal,
          onProgress: ({ receivedBytes }) => {
            if (stopAfter !== undefined && receivedBytes > stopAfter) stop.abort('SIGINT')
          },
        }).catch((reason): undefined => void expect(reason).toBe('SIGINT'))
        if (existsSync(path)) expect(files).toContain(sha256(readFileSync(path)))
        if (result?.ok) expect(result.file.sha256).toBe(sha256(readFileSync(path)))
        expect(readdirSync(folder).filter((name) => name !== 'run-1.png')).toEqual([])
      }
    }),
    { numRuns: RUNS },
  )
})
