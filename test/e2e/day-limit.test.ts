/** The real binary: two commands at once, with room for one of them under `maxCostPerDay`. */
import { expect, it } from 'vitest'
import { personAt, rushes, serveQuickly, start } from '../support/index.js'

it('only one of two commands that start together creates its run', async () => {
  const service = await serveQuickly()
  for (const round of [1, 2, 3]) {
    const person = (await personAt(service)).with({ RUSHES_MAX_COST_PER_DAY: '3' })
    const prices = JSON.stringify({ [person.env.RUSHES_IMAGE_MODEL ?? '']: { run: 2 } })
    expect(await rushes(person, ['config', 'set', 'prices', prices])).toMatchObject({ code: 0 })
    const words = ['run', 'image', 'a fox', '--no-wait']
    const both = [start(person, words), start(person, words)]
    const ended = await Promise.all(both.map((each) => each.ended))
    expect(ended.map(({ code }) => code).sort(), `round ${round}`).toEqual([0, 2])
    expect(ended.map(({ stderr }) => stderr).join('')).toContain('but maxCostPerDay allows 3 credits')
    const { stdout } = await rushes(person, ['list'])
    expect(stdout.trim().split('\n')).toHaveLength(1)
  }
})
