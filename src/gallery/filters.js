/** The filters of the page: search, kind, model, label and grouping. Filters that cannot change anything are hidden. */

import { element } from './elements.js'

const KIND_WORDS = { image: 'Images', video: 'Videos', audio: 'Audio', file: 'Files' }

/** Fills the filters with the values of the items. Calls `onChange` after each change. */
export function createFilters(items, onChange) {
  const byId = (id) => document.getElementById(id)
  const [search, options, filters, kinds, model, label, group] =
    'search options filters kinds model label group'.split(' ').map(byId)
  const runs = [...new Set(items.map(({ run }) => run))]

  const present = Object.keys(KIND_WORDS).filter((kind) => items.some((item) => item.media === kind))
  const buttons = [['', 'All'], ...present.map((kind) => [kind, KIND_WORDS[kind]])].map(([value, text]) =>
    element('button', { type: 'button', value, 'aria-pressed': String(value === '') }, text),
  )
  for (const button of buttons)
    button.addEventListener('click', () => {
      for (const each of buttons) each.setAttribute('aria-pressed', String(each === button))
      onChange()
    })
  kinds.replaceChildren(...buttons)
  kinds.hidden = present.length < 2
  const models = [...new Set(runs.map((run) => run.model))].sort()
  model.append(...models.map((name) => element('option', { value: name }, name)))
  model.hidden = models.length < 2
  const labels = [...new Set(runs.flatMap((run) => run.labels))].sort()
  label.append(...labels.map((text) => element('option', { value: text }, text)))
  label.hidden = labels.length === 0
  if (label.hidden) group.querySelector('[value="label"]').remove()
  group.hidden = items.length < 2
  search.hidden = items.length === 0
  options.hidden = [...filters.children].every((each) => each.hidden)

  search.addEventListener('input', onChange)
  for (const select of [model, label]) select.addEventListener('change', onChange)
  // The fragment of the URL has the grouping, so that a bookmark keeps it.
  group.addEventListener('change', () => location.replace(`#group=${group.value}`))
  addEventListener('hashchange', () => {
    readGroup()
    onChange()
  })
  options.addEventListener('click', () => {
    const isOpen = options.getAttribute('aria-expanded') !== 'true'
    options.setAttribute('aria-expanded', String(isOpen))
    filters.classList.toggle('open', isOpen)
  })

  function readGroup() {
    const wanted = new URLSearchParams(location.hash.slice(1)).get('group')
    group.value = [...group.options].some(({ value }) => value === wanted) ? wanted : ''
  }
  readGroup()

  return {
    search,
    grouping: () => group.value,
    label: () => label.value,
    matching() {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean)
      const kind = kinds.querySelector('[aria-pressed="true"]')?.value ?? ''
      return items.filter(
        (item) =>
          (kind === '' || item.media === kind) &&
          (model.value === '' || item.run.model === model.value) &&
          (label.value === '' || item.run.labels.includes(label.value)) &&
          words.every((word) => item.words.includes(word)),
      )
    },
  }
}
