import { describe, expect, it } from 'vitest';
import { minRetailPriceIn } from '../../src/providers/esim-access/sale-note.js';

const usd = (amount: number) => ({ amount, currency: 'USD' });

describe('a minimum retail price', () => {
  it.each([
    ['Resellers must ensure a minimum retail price of USD 4.50.', 450],
    ['Resellers must ensure minimum retail price $10', 1_000],
    ['Minimum retail price: US$ 12.5', 1_250],
    ['Resellers must ensure that the minimum retail price is not less than 9.99 USD!', 999],
    ['MINIMUM RETAIL PRICE = 3 US dollars', 300],
    ['$4.50 is the minimum retail price', 450],
    ['USD 7 as minimum retail price, see the terms', 700],
    ['Not for SMS. The minimum retail price should be set at $ 8', 800],
  ])('is read from %j', (note, amount) => {
    expect(minRetailPriceIn(note)).toEqual(usd(amount));
  });

  it.each([
    ['no note', null],
    ['an empty note', ''],
    ['no amount', 'Resellers must ensure a minimum retail price.'],
    ['other words', 'The retail price is USD 4.50.'],
    ['a maximum', 'Maximum retail price: USD 4.50'],
    ['euros', 'Minimum retail price: EUR 4.50'],
    ['a euro sign', 'Minimum retail price: €4.50'],
    ['no currency', 'Minimum retail price: 4.50'],
    ['Hong Kong dollars', 'Minimum retail price HK$10'],
    ['Australian dollars', 'minimum retail price A$10'],
    ['Canadian dollars behind the amount', 'Minimum retail price $10 CAD'],
    ['two amounts', 'Minimum retail price USD 4.50 or EUR 4.10'],
    ['two amounts in USD', 'Minimum retail price USD 4.50, for travel agencies USD 4.00'],
    ['a range', 'Minimum retail price USD 4-5'],
    ['another number', 'Minimum retail price USD 4.50 for 30 days'],
    ['a price per day', 'Minimum retail price USD 2 per day'],
    ['a price for a day', 'Minimum retail price: $2/day'],
    ['a price of each gigabyte', 'Minimum retail price: $2 each GB'],
    ['a discount', 'minimum retail price USD 10% off'],
    ['a comma that may mean thousands', 'Minimum retail price USD 1,000'],
    ['a decimal comma', 'Minimum retail price USD 4,50'],
    ['thousandths', 'Minimum retail price USD 4.505'],
    ['nothing', 'Minimum retail price USD 0'],
    ['a denial', 'There is no minimum retail price of USD 5'],
    ['an amount of another sentence', 'There is a minimum retail price. Cost: USD 5'],
    ['an amount far away', 'USD 5 is our price; ask us for the minimum retail price'],
    ['an amount that is no money', 'Minimum retail price: 5 GB'],
  ])('is not guessed from %s', (_, note) => {
    expect(minRetailPriceIn(note)).toBeNull();
  });

  it('is read quickly from a long note', () => {
    const startedAt = performance.now();
    for (const word of ['minimum retail price of ', 'no ', '$', ' is the', '1', '\t'])
      expect(minRetailPriceIn(`${word.repeat(100_000)} 5 GB`)).toBeNull();
    expect(performance.now() - startedAt).toBeLessThan(20_000);
  });
});
