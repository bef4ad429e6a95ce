"""The demo database: customers, orders and items, modelled on Informix's stores_demo.

Rows are plain dictionaries with every column. Random generators are arguments.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from ..server import EmulatedServer

RowDict = dict[str, Any]

DATABASE, LOCALE = "stores", "en_US.utf8"
PASSWORD = "in4mix"  # of a toy without data; printed when it starts
TABLE_NAMES = ("informix.customers", "informix.orders", "informix.items")
CUSTOMERS, ORDERS, ITEMS = (f"{DATABASE}:{name}" for name in TABLE_NAMES)
CLERKS = (1001, 1002, 1003, 1004, 1007)

COLUMNS = {
    CUSTOMERS: "customer_num serial primary key, fname char(15), lname char(15), company varchar(40,0),"
    " city nvarchar(30,0), phone char(18), credit_limit money(10,2), since date",
    ORDERS: "order_num serial primary key, customer_num integer, placed_at datetime year to second,"
    " ship_date date, ship_instruct varchar(40,0), ship_weight decimal(8,2),"
    " ship_charge money(6,2), total decimal(12,2)",
    ITEMS: "order_num integer, item_num smallint, stock_num smallint, manu_code char(3),"
    " quantity smallint, unit_price money(8,2), total_price decimal(10,2),"
    " primary key (order_num, item_num)",
}
KEYS = {CUSTOMERS: ("customer_num",), ORDERS: ("order_num",), ITEMS: ("order_num", "item_num")}
_LOG_COUNT, _LOG_PAGE_BYTES = 8, 2048

_FIRST_NAMES = (
    "Ludwig",
    "Zoë",
    "Jürgen",
    "Åsa",
    "François",
    "Carole",
    "Łukasz",
    "Inês",
    "Alfred",
    "Mai",
)
_LAST_NAMES = ("Pauli", "Sadler", "Çelik", "Grant", "Müller", "Nørgaard", "Higgins", "García", "Vector")
_COMPANIES = ("All Sports Supplies", "Café Vélo", "Phoenix Läufer", "Play Ball!", "Šport Kranj", None)
_CITIES = ("Sunnyvale", "Zürich", "São Paulo", "Kraków", "Århus", "Redwood City", "Besançon", "Münster")
_STREETS = ("express", "ring bell twice", "déjà payé", "delivery, back entrance", "c/o Bäckerei", None)
_STOCK = (
    (1, "HRO", Decimal("250.00")),
    (1, "SMT", Decimal("450.00")),
    (2, "HRO", Decimal("126.00")),
    (4, "HSK", Decimal("960.00")),
    (5, "NRG", Decimal("28.50")),
    (6, "ANZ", Decimal("48.75")),
    (110, "PRC", Decimal("19.99")),
    (204, "KAR", Decimal("45.20")),
)


def demo_server(
    name: str = "informix",
    latency_seconds: float = 0.0,
    wait_to_fill: bool = False,
    dialect: str = "informix",
    poses_as: str = "",
    log_mib: int = 16,
) -> EmulatedServer:
    """Return an emulated server with the demo database and bounded memory.

    `poses_as` is a row of the emulator's table of servers; by default the dialect's. `log_mib` is the
    size of all log files together: 16 MiB keep the last few minutes of a server that runs for days.
    """
    server = EmulatedServer(
        name,
        poses_as=poses_as or dialect,
        latency_seconds=latency_seconds,
        wait_to_fill=wait_to_fill,
        log_pages=(log_mib << 20) // (_LOG_COUNT * _LOG_PAGE_BYTES),
        page_bytes=_LOG_PAGE_BYTES,
        log_count=_LOG_COUNT,
    )
    server.create_database(DATABASE, logged=True, locale=LOCALE)
    for table, columns in COLUMNS.items():
        server.create_table(table, columns)
    return server


def customer(chance: random.Random, number: int) -> RowDict:
    """Return a new customer."""
    return {
        "customer_num": number,
        "fname": chance.choice(_FIRST_NAMES),
        "lname": chance.choice(_LAST_NAMES),
        "company": chance.choice(_COMPANIES),
        **address(chance),
        "credit_limit": Decimal(chance.randint(1, 400) * 250).quantize(Decimal("0.01")),
        "since": date(2024, 1, 1) + timedelta(days=chance.randrange(600)),
    }


def address(chance: random.Random) -> RowDict:
    """Return where a customer lives."""
    phone = f"{chance.randint(200, 989)}-555-{chance.randint(0, 9999):04}"
    return {"city": chance.choice(_CITIES), "phone": phone}


def items(chance: random.Random, order_number: int) -> Iterator[RowDict]:
    """Yield the items of an order."""
    for place in range(1, chance.randint(1, 4) + 1):
        stock, maker, price = chance.choice(_STOCK)
        quantity = chance.randint(1, 9)
        yield {
            "order_num": order_number,
            "item_num": place,
            "stock_num": stock,
            "manu_code": maker,
            "quantity": quantity,
            "unit_price": price,
            "total_price": price * quantity,
        }


def order(
    chance: random.Random, number: int, customer_number: int, content: Sequence[RowDict], now: float
) -> RowDict:
    """Return a new order, not yet shipped."""
    return {
        "order_num": number,
        "customer_num": customer_number,
        "placed_at": datetime.fromtimestamp(int(now)),
        "ship_date": None,
        "ship_instruct": chance.choice(_STREETS),
        "ship_weight": None,
        "ship_charge": None,
        "total": total(content),
    }


def total(content: Sequence[RowDict]) -> Decimal:
    """Return what the items of an order cost."""
    return sum((item["total_price"] for item in content), Decimal("0.00"))


def shipment(chance: random.Random, now: float) -> RowDict:
    """Return what shipping changes of an order."""
    return {
        "ship_date": date.fromtimestamp(now) + timedelta(days=chance.randint(0, 3)),
        "ship_weight": Decimal(chance.randint(50, 9999)) / 100,
        "ship_charge": Decimal(chance.randint(300, 4500)) / 100,
    }


def new_quantity(chance: random.Random, item: RowDict) -> RowDict:
    """Return another quantity of an item, and what it costs then."""
    quantity = chance.choice([n for n in range(1, 10) if n != item["quantity"]])
    return {"quantity": quantity, "total_price": item["unit_price"] * quantity}
