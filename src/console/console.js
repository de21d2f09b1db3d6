/** What the pages cannot do without a script and htmx does not do: copying, times, rest in a hidden tab, names of files. */
document.addEventListener('click', async ({ target }) => {
  const button = target.closest?.('[data-copy]')
  if (!button) return
  await navigator.clipboard.writeText(button.dataset.copy)
  const label = button.querySelector('span')
  const before = label.textContent
  if (before === 'Copied') return
  label.textContent = 'Copied'
  setTimeout(() => {
    label.textContent = before
  }, 1500)
})

/** A filter of htmx (`every 2s [!document.hidden]`) would need eval. */
document.addEventListener('htmx:before:request', (event) => {
  if (document.hidden && event.detail.ctx.request.method === 'GET') event.preventDefault()
})

const UNITS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
]
const relative = new Intl.RelativeTimeFormat('en')
const local = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'medium', hourCycle: 'h23' })

/** Times as on the clock of the user. They are in UTC where scripts are off. */
function showTimes() {
  for (const time of document.querySelectorAll('time')) {
    const at = new Date(time.dateTime)
    const distance = at - Date.now()
    const [unit, length] = UNITS.find(([, each]) => Math.abs(distance) >= each) ?? []
    const isRelative = 'relative' in time.dataset
    time.title = isRelative ? local.format(at) : time.dateTime
    const words = unit ? relative.format(Math.trunc(distance / length), unit) : 'just now'
    const text = isRelative ? words : local.format(at)
    if (time.textContent !== text) time.textContent = text
  }
}
showTimes()
setInterval(showTimes, 30_000)
document.addEventListener('htmx:after:swap', showTimes)

/** The names of the chosen files, which the transparent field does not show. */
document.addEventListener('change', ({ target }) => {
  if (target.type !== 'file') return
  target.closest('.drop').querySelector('p').textContent =
    [...target.files].map(({ name }) => name).join(', ') || 'Choose images or drop them here'
})
