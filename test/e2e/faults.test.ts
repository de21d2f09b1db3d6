/** Faults over a real port against the real program, and the recipes of the docs as they stand. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { bash, createPlace, type Place, rushes, serve, start } from '../support/binary.js'
import { createFaultyProxy } from '../support/faults.js'
import { usesPostgres } from '../support/test-database.js'

describe.concurrent('serve --fault', () => {
  it('says on standard error what struck, as often as it was asked for', async () => {
    const place = createPlace()
    const service = start(place, ['serve', '--port', '0', '--fault', 'create:lose::1'], { stdin: 'ignore' })
    const [, url] = await service.says('stdout', /RUSHES_BASE_URL=(\S+)\n/)
    const [, key] = await service.says('stdout', /RUSHES_API_KEY=(\S+)\n/)
    const person = place.with({
      RUSHES_BASE_URL: url,
      RUSHES_API_KEY: key,
      RUSHES_IMAGE_MODEL: 'rushes/preview-image',
    })
    const lost = await rushes(person, ['run', 'image', 'a fox', '--no-wait'])
    expect({ code: lost.code, stdout: lost.stdout }).toEqual({ code: 13, stdout: '' })
    expect(lost.stderr).toContain('A run may exist and cost money')
    const words = 'fault: create lost its response after the service acted\n'
    expect(service.said.stderr).toContain(words)
    expect((await rushes(person, ['run', 'image', 'a fox', '--no-wait'])).code).toBe(0)
    expect(service.said.stderr.split(words)).toHaveLength(2)
  })

  it('says it in JSON under --json, and ends at once whatever it holds open', async () => {
    const place = await serve(createPlace(), ['--fault', 'create:stall'])
    const waiting = start(place, ['run', 'image', 'a fox'], { stdin: 'ignore' })
    const [line] = await place.process.says('stderr', /^\{.*\}$/m)
    expect(JSON.parse(line)).toEqual({ warning: { message: 'fault: create stalled without a response' } })
    const before = performance.now()
    place.process.kill('SIGTERM')
    expect((await place.process.ended).code).toBe(0)
    expect(performance.now() - before).toBeLessThan(5_000)
    expect((await waiting.ended).code).toBe(13)
  })
})

describe('behind the proxy', () => {
  it('an upload that is reset is an outcome unknown, a late body is not, and a broken download comes again', async () => {
    const service = await serve(createPlace())
    const proxy = await createFaultyProxy(service.url)
    const place = service.with({ RUSHES_BASE_URL: proxy.url })

    proxy.next('create', 'reset:upload=20')
    const lost = await rushes(place, ['run', 'image', 'a fox', '-o', 'fox.png'])
    expect({ code: lost.code, reached: proxy.reached('create') }).toEqual({ code: 13, reached: 0 })

    proxy.next('create', 'slow:2kB')
    proxy.next('output', 'reset:1000')
    proxy.next('status', '503')
    const ran = await rushes(place, ['run', 'image', 'a fox', '-o', 'fox.png'])
    expect({ code: ran.code, stdout: ran.stdout }).toEqual({ code: 0, stdout: 'fox.png\n' })
    expect(proxy.reached('create')).toBe(1)
    expect(proxy.strikes).toHaveLength(4)
    expect(proxy.seen.filter(({ place: where }) => where === 'output').length).toBeGreaterThan(1)
    expect(readdirSync(place.folder)).toEqual(['fox.png'])
    expect(readFileSync(join(place.folder, 'fox.png'), 'latin1').slice(1, 4)).toBe('PNG')
  })
})

describe.concurrent('the recipes of docs/faults.md', () => {
  const recipes = new Map(
    readFileSync('docs/faults.md', 'utf8')
      .split(/^### /m)
      .slice(1)
      .map((section) => {
        const [, script = ''] = /^```sh\n([\s\S]*?)^```$/m.exec(section) ?? []
        return [section.slice(0, section.indexOf(':')), script] as const
      }),
  )
  const recipe = (exit: string) => recipes.get(`Exit ${exit}`) ?? ''

  it('are three, for bash', () => {
    expect([...recipes.keys()]).toEqual(['Exit 13', 'Exit 7', 'Exit 12'])
    for (const script of recipes.values())
      expect(script).toMatch(/^#!\/usr\/bin\/env bash\nset -euo pipefail\n/)
  })

  const filesOf = (place: Place) => readdirSync(place.folder).sort()

  // Each start needs a key, so data of its own; PostgreSQL keeps those of the first.
  it.skipIf(usesPostgres)(
    '13: leaves a note, sends nothing again, and goes on when somebody has looked',
    async () => {
      const place = createPlace()
      const first = await bash(place, recipe('13'))
      expect({ code: first.code, files: filesOf(place) }).toEqual({ code: 13, files: ['fox.unknown'] })
      expect(first.stderr).toContain('fault: create lost its response after the service acted')

      const second = await bash(place, recipe('13'))
      expect({ code: second.code, files: filesOf(place) }).toEqual({ code: 13, files: ['fox.unknown'] })
      expect(second.stderr).toContain('Check the account')
      expect(second.stderr).not.toContain('fault:')

      const looked = recipe('13').replace(' --fault create:lose::1', '')
      const third = await bash(place, `rm fox.unknown\n${looked}`)
      expect({ code: third.code, files: filesOf(place) }).toEqual({ code: 0, files: ['fox.png'] })
    },
  )

  it('7: waits, tries again, and has one run', async () => {
    const place = createPlace()
    const { code, stdout, stderr } = await bash(place, recipe('7'))
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'fox.png\n' })
    expect(stderr).toContain('The key is in use elsewhere; trying again in 1 s.')
    expect(stderr.match(/^fault: create answered 429 RATE_LIMITED$/gm)).toHaveLength(4)
    expect(filesOf(place)).toEqual(['fox.png'])
  })

  it('12: fetches again and pays once', async () => {
    const place = createPlace()
    const { code, stdout, stderr } = await bash(place, recipe('12'))
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'fox.png\n' })
    expect(stderr).toContain('Attempt 2 failed')
    expect(stderr.match(/^fault: output answered 410$/gm)).toHaveLength(2)
    expect(filesOf(place)).toEqual(['fox.id', 'fox.png'])
  })
})
