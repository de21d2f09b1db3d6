/** Runs the recipes of docs/faults.md as they are written. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { bash, createPlace, type Place } from './support/binary.js'

const page = readFileSync('docs/faults.md', 'utf8')
const scriptOf = (section = ''): string => /^```sh\n([\s\S]*?)^```$/m.exec(section)?.[1] ?? ''
const faultyService = scriptOf(/^## Recipes\n[\s\S]*/m.exec(page)?.[0])
const recipes = new Map(
  page
    .split(/^### /m)
    .slice(1)
    .map((section) => [section.slice(0, section.indexOf(':')), scriptOf(section)] as const),
)
const recipe = (exit: string) => recipes.get(`Exit ${exit}`) ?? ''

function createPlaceWithService(): Place {
  const place = createPlace()
  writeFileSync(join(place.folder, 'faulty.sh'), faultyService)
  return place
}

describe.concurrent('the recipes of docs/faults.md', () => {
  it('consist of three bash scripts in strict mode', () => {
    expect([...recipes.keys()]).toEqual(['Exit 13', 'Exit 7', 'Exit 12'])
    for (const script of recipes.values())
      expect(script).toMatch(/^#!\/usr\/bin\/env bash\nset -euo pipefail\n\. \.\/faulty\.sh /)
  })

  const filesOf = (place: Place) =>
    readdirSync(place.folder)
      .filter((name) => name !== 'faulty.sh')
      .sort()

  // Each start needs a key, so data of its own; PostgreSQL keeps those of the first.
  it('handle exit 13 with a note, and resend nothing until a person has checked the account', async () => {
    const place = createPlaceWithService()
    const first = await bash(place, recipe('13'))
    expect({ code: first.code, files: filesOf(place) }).toEqual({ code: 13, files: ['fox.unknown'] })
    expect(first.stderr).toContain('fault: create lost its response after the service acted')

    const second = await bash(place, recipe('13'))
    expect({ code: second.code, files: filesOf(place) }).toEqual({ code: 13, files: ['fox.unknown'] })
    expect(second.stderr).toContain('Check the account')
    expect(second.stderr).not.toContain('fault:')

    const looked = recipe('13').replace('create:lose::1', 'latency:1ms')
    const third = await bash(place, `rm fox.unknown\n${looked}`)
    expect({ code: third.code, files: filesOf(place) }).toEqual({ code: 0, files: ['fox.png'] })
  })

  it('handle exit 7 by waiting and retrying, with one run', async () => {
    const place = createPlaceWithService()
    const { code, stdout, stderr } = await bash(place, recipe('7'))
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'fox.png\n' })
    expect(stderr).toContain('The key is in use elsewhere; trying again in 1 s.')
    expect(stderr.match(/^fault: create answered 429 RATE_LIMITED$/gm)).toHaveLength(4)
    expect(filesOf(place)).toEqual(['fox.png'])
  })

  it('handle exit 12 by downloading again, without paying twice', async () => {
    const place = createPlaceWithService()
    const { code, stdout, stderr } = await bash(place, recipe('12'))
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'fox.png\n' })
    expect(stderr).toContain('Attempt 2 failed')
    expect(stderr.match(/^fault: output answered 410$/gm)).toHaveLength(2)
    expect(filesOf(place)).toEqual(['fox.id', 'fox.png'])
  })
})
