/** Runs the examples of docs/operations.md, in their order, against a real service whose data they copy. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { bash, createPlace, type Place, type Service, serve } from './support/binary.js'

const page = readFileSync(new URL('../docs/operations.md', import.meta.url), 'utf8')
const scripts = [...page.matchAll(/^```bash\n([\s\S]*?)^```$/gm)].map(([, script = '']) => script)

async function run(place: Place, script: string): Promise<string> {
  const { code, stdout, stderr } = await bash(place, `set -euo pipefail\n${script}`)
  expect(code, `${script}\n${stdout}\n${stderr}`).toBe(0)
  return stdout.trim()
}

async function stop({ process }: Service): Promise<void> {
  process.kill('SIGTERM')
  expect(await process.ended).toMatchObject({ code: 0 })
}

test('a backup of a running service is restored with its runs and files, into a new folder, and moved elsewhere', async () => {
  const [backUp, restore, move] = scripts as [string, string, string]
  expect(scripts).toHaveLength(3)
  const place = createPlace()
  let service = await serve(place, ['--data', './service'])
  const key = { RUSHES_API_KEY: service.apiKey }
  const create = () =>
    run(service.with(key), 'rushes run image "a fox" --json | sed -E \'s/.*"id":"(run_[^"]*)".*/\\1/\'')
  /** With the service of one folder: which of the runs it has, and whether their files are there. */
  const found = async (data: string, ids: readonly string[]) => {
    service = await serve(place, ['--data', data])
    const results: boolean[] = []
    for (const id of ids) {
      const asked = await fetch(`${service.url}/api/v1/runs/${id}`, {
        headers: { authorization: `Bearer ${key.RUSHES_API_KEY}` },
      })
      const { output } = (await asked.json()) as { output?: { urls: readonly string[] } }
      results.push(asked.status === 200 && (await fetch(output?.urls[0] ?? '')).status === 200)
    }
    await stop(service)
    return results
  }

  const kept = await create()
  expect(await run(place, backUp)).toMatch(/^\.\/backup\/service-\d{4}-\d\d-\d\d\.db$/)
  const later = await create()
  await stop(service)

  expect(await run(place, move)).toBe('ok')
  expect(await found('./moved', [kept, later])).toEqual([true, true])
  expect(await run(place, restore)).toBe('ok')
  expect(await found('./restored', [kept, later])).toEqual([true, false])
})
