/** Groups results into sections, and within a section into units of variants. Does not use the DOM. */

import { amountText } from './elements.js'

const WEEKDAY = new Intl.DateTimeFormat(undefined, { dateStyle: 'full' })

/** Returns the sections that an item belongs to. The empty name is the section of runs without a label. */
function sectionsOf({ run }, grouping, onlyLabel) {
  if (grouping === 'day') return [new Date(run.time).setHours(0, 0, 0, 0)]
  if (grouping !== 'label') return [undefined]
  if (onlyLabel !== '') return [onlyLabel]
  return run.labels.length === 0 ? [''] : new Set(run.labels)
}

function addTo(map, key, item) {
  const same = map.get(key)
  if (same === undefined) map.set(key, [item])
  else same.push(item)
}

const sortLabels = (a, b) => (a === '') - (b === '') || (a < b ? -1 : 1)

/**
 * Returns the sections, with their items and units. Days are newest first and labels sorted; without grouping, there is
 * one section without a name.
 */
export function groupItems(items, grouping, onlyLabel) {
  const byName = new Map()
  for (const item of items)
    for (const name of sectionsOf(item, grouping, onlyLabel)) addTo(byName, name, item)
  const names = [...byName.keys()]
  if (grouping === 'label') names.sort(sortLabels)
  return names.map((name) => ({ name, items: byName.get(name), units: unitsOf(byName.get(name)) }))
}

/**
 * Collects variants: outputs of one run, and runs of the same model and prompt, such as those of `-n 4`. A unit is at
 * the place of its newest variant, and has them in the order of creation.
 */
function unitsOf(items) {
  const byKey = new Map()
  for (const item of items)
    addTo(byKey, item.run.prompt === '' ? item.order : `${item.run.model}\n${item.run.prompt}`, item)
  return [...byKey.values()].map((unit) => unit.sort((a, b) => b.order - a.order || a.part - b.part))
}

/** Returns the title of a section, its number of results, and the sum of the known estimates of its runs. */
export function headingOf(name, items, grouping) {
  const sums = new Map()
  let unpriced = 0
  for (const { estimate } of new Set(items.map(({ run }) => run)))
    if (estimate === undefined) unpriced++
    else sums.set(estimate.currency, (sums.get(estimate.currency) ?? 0) + estimate.millionths)
  const amounts = [...sums].filter(([, sum]) => sum > 0).map(([currency, sum]) => amountText(sum, currency))
  const more = unpriced > 0 ? ` (${unpriced === 1 ? '1 run' : `${unpriced} runs`} without a price)` : ''
  const count = items.length === 1 ? '1 result' : `${items.length.toLocaleString()} results`
  return {
    title: grouping === 'day' ? WEEKDAY.format(name) : name === '' ? 'No label' : name,
    details: amounts.length === 0 ? count : `${count} · Estimate: ${amounts.join(' + ')}${more}`,
  }
}
