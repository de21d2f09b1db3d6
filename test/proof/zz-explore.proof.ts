import { appendFileSync, writeFileSync } from 'node:fs'
import fc from 'fast-check'
import { it } from 'vitest'
import { COMMANDS, complaintsOf, malformedCase, runCase } from '../support/malformed.js'

it('explores', async () => {
  const seen = new Map<string, number>()
  const codes = new Map<string, number>()
  let slowest = 0
  writeFileSync('/tmp/explore.txt', '')
  await fc.assert(
    fc.asyncProperty(malformedCase, async (each) => {
      const began = performance.now()
      let complaints: readonly string[],
        stderr = ''
      try {
        const outcome = await runCase(each, COMMANDS[each.command])
        complaints = complaintsOf(outcome, each.command)
        stderr = outcome.ran.stderr + '|||' + outcome.ran.stdout.slice(0, 300)
        const k = `${each.command} ${outcome.ran.code}`
        codes.set(k, (codes.get(k) ?? 0) + 1)
      } catch (e) {
        complaints = [`THROWN ${(e as Error).stack}`]
      }
      slowest = Math.max(slowest, performance.now() - began)
      for (const c of complaints) {
        const key = c.replace(/[0-9a-f]{6,}/g, '#').slice(0, 60)
        seen.set(key, (seen.get(key) ?? 0) + 1)
        if ((seen.get(key) ?? 0) <= 3)
          appendFileSync(
            '/tmp/explore.txt',
            `## ${c.slice(0, 400)}\n${JSON.stringify(each).slice(0, 1500)}\n${JSON.stringify(stderr.slice(0, 900))}\n\n`,
          )
      }
    }),
    { numRuns: Number(process.env.N ?? 1000), seed: Number(process.env.SEED ?? Date.now() % 2 ** 31) },
  )
  process.stdout.write(
    `${[...seen].map(([k, n]) => `${n} ${k}`).join('\n')}\n${[...codes]
      .sort()
      .map(([k, n]) => `${k}: ${n}`)
      .join('; ')}\nslowest ${slowest}\n`,
  )
})
